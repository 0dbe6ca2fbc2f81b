/** Series of statistics as charts draw them. */
import type { JobStatisticsOut, StatisticsPointOut } from '../../api/schema';
import { parseDuration } from '../../format/times';
import type { ChartData } from '../../ui/time_chart';

/** Workers write what they counted every ten seconds. */
const LAG = 10_000;
const MINUTE = 60_000;

/** Return the steps with at least a minute counted: less would look like a fall. */
export function countedPoints(statistics: JobStatisticsOut, now: number): StatisticsPointOut[] {
  return statistics.series.filter((point) => countedMinutes(point, statistics, now) >= 1);
}

/** Return how much of a step was counted. */
function countedMinutes({ at }: StatisticsPointOut, of: JobStatisticsOut, now: number): number {
  return Math.min(stepOf(of), now - LAG - Date.parse(at)) / MINUTE;
}

function stepOf({ step }: JobStatisticsOut): number {
  return parseDuration(step) ?? MINUTE;
}

export function throughput(statistics: JobStatisticsOut, now: number): ChartData {
  const points = countedPoints(statistics, now);
  const rate = (point: StatisticsPointOut) =>
    (point.completed + point.failed) / countedMinutes(point, statistics, now);
  const rates = points.map(rate);
  // Without any, nothing was measured.
  const values = rates.some((value) => value > 0) ? rates : rates.map(() => null);
  return { times: timesOf(points), lines: [{ label: 'ended', tone: 'running', values }] };
}

/** The share of jobs that failed for good; nothing where none ended. */
export function failures(points: readonly StatisticsPointOut[]): ChartData {
  const share = ({ completed, failed }: StatisticsPointOut) =>
    completed + failed ? (100 * failed) / (completed + failed) : null;
  return {
    times: timesOf(points),
    lines: [{ label: 'failed', tone: 'failed', values: points.map(share) }],
  };
}

export function percentiles(
  points: readonly StatisticsPointOut[],
  name: 'wait_ms' | 'run_ms',
): ChartData {
  return {
    times: timesOf(points),
    lines: [
      { label: 'p50', tone: 'completed', values: points.map((point) => point[name].p50) },
      { label: 'p95', tone: 'running', values: points.map((point) => point[name].p95) },
      { label: 'p99', tone: 'retry', values: points.map((point) => point[name].p99) },
    ],
  };
}

function timesOf(points: readonly StatisticsPointOut[]): number[] {
  return points.map(({ at }) => Date.parse(at) / 1000);
}
