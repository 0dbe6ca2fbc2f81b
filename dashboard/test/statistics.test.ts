import { expect, test } from 'vitest';
import type { JobStatisticsOut } from '../src/api/schema';
import { countedPoints, failures, throughput } from '../src/screens/statistics/series';
import { lonePlaces } from '../src/ui/time_chart';

const NONE = { p50: null, p95: null, p99: null };
const NOW = Date.parse('2026-05-04T12:03:10Z');

function statistics(step: string, ...points: [string, number, number][]): JobStatisticsOut {
  return {
    from: '',
    to: '',
    step,
    series: points.map(([at, completed, failed]) => ({
      at: `2026-05-04T${at}:00Z`,
      completed,
      failed,
      retried: 0,
      crashed: 0,
      wait_ms: NONE,
      run_ms: NONE,
    })),
  };
}

test('a minute that goes on is left out, and what was not yet written is not counted', () => {
  const found = statistics('1m', ['12:01', 60, 0], ['12:02', 60, 0], ['12:03', 3, 0]);

  expect(countedPoints(found, NOW).map(({ at }) => at.slice(11, 16))).toEqual(['12:01', '12:02']);
});

test('a long step that goes on is a rate over the part that has passed', () => {
  const found = statistics('1h', ['11:00', 600, 0], ['12:00', 25, 5]);

  expect(throughput(found, NOW).lines[0]?.values).toEqual([10, 10]);
});

test('a step in which nothing ended has no share of failures', () => {
  const found = statistics('1m', ['12:01', 3, 1], ['12:02', 0, 0]);

  expect(failures(countedPoints(found, NOW)).lines[0]?.values).toEqual([25, null]);
});

test('a time without jobs has no throughput to draw; a failure-free one has a line at zero', () => {
  const idle = statistics('1m', ['12:01', 0, 0], ['12:02', 0, 0]);
  const good = statistics('1m', ['12:01', 5, 0], ['12:02', 5, 0]);

  expect(throughput(idle, NOW).lines[0]?.values).toEqual([null, null]);
  expect(failures(countedPoints(good, NOW)).lines[0]?.values).toEqual([0, 0]);
});

test('values between gaps are drawn as points', () => {
  expect(lonePlaces([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(lonePlaces([7])).toEqual([0]);
  expect(lonePlaces([null, null])).toEqual([]);
});
