import { expect, test } from 'vitest';
import { parseJson, writeJson } from '../src/api/json';
import { commandLine, curl, quote } from '../src/format/commands';
import { compact, formatBytes, formatCount, formatShare, plural } from '../src/format/numbers';
import { formatDay, formatDuration, formatRelative, parseDuration } from '../src/format/times';

test.each([
  [0, '0 ms'],
  [0.4, '0.4 ms'],
  [12, '12 ms'],
  [999.4, '999 ms'],
  [3_100, '3.1 s'],
  [42_400, '42 s'],
  [59_980, '1 m'],
  [250_000, '4 m 10 s'],
  [3_599_700, '1 h'],
  [7_500_000, '2 h 5 m'],
  [273_600_000, '3 d 4 h'],
  [-5_000, '−5 s'],
])('a duration of %s ms reads %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test.each([
  [4_000, '4 s ago'],
  [400, 'now'],
  [-125_000, 'in 2 m'],
  [86_400_000 * 3, '3 d ago'],
])('%s ms since a time reads %s', (distance, text) => {
  expect(formatRelative(1_000_000_000_000 - distance, 1_000_000_000_000)).toBe(text);
});

test('durations of the server are parsed', () => {
  expect(['30m', '1500ms', '-2s', '12us', 'soon'].map(parseDuration)).toEqual([
    1_800_000,
    1500,
    -2000,
    0.012,
    undefined,
  ]);
});

test('counts show their precision', () => {
  expect(formatCount({ count: 1204, precision: 'exact' })).toBe('1,204');
  expect(formatCount({ count: 10_000, precision: 'at_least' })).toBe('10,000+');
  expect(formatCount({ count: 1_234_567, precision: 'estimate' })).toBe('≈ 1.2 M');
  expect(formatCount(2n ** 63n - 1n)).toBe('9,223,372,036,854,775,807');
  expect([compact(9_999), compact(12_345)]).toEqual(['9,999', '12.3 K']);
  expect([plural(1, 'job'), plural(1204, 'job')]).toEqual(['1 job', '1,204 jobs']);
  expect([
    formatShare(4, 1000),
    formatShare(1, 100_000),
    formatShare(0, 9),
    formatShare(0, 0),
  ]).toEqual(['0.4 %', '< 0.1 %', '0 %', '–']);
  expect([formatBytes(512), formatBytes(1536), formatBytes(5e6)]).toEqual([
    '512 B',
    '1.5 KB',
    '4.8 MB',
  ]);
});

test.each([
  '{"a":9223372036854775807,"b":[-9223372036854775808,1,1.5],"c":"9007199254740993"}',
  '{"9007199254740993":"a \\"9007199254740993\\" b","d":1e+300}',
  '[12345678901234567890]',
])('%s is read and written without a change', (text) => {
  expect(writeJson(parseJson(text))).toBe(text);
});

test('only unsafe integers become bigints', () => {
  expect(parseJson('[9007199254740991,9007199254740993]')).toEqual([
    9007199254740991,
    9007199254740993n,
  ]);
  expect(parseJson('')).toBeUndefined();
});

test('commands are quoted for a shell', () => {
  expect(quote(`it's`)).toBe(`'it'\\''s'`);
  expect(commandLine(['forge', 'jobs', 'list'], { type: 'a b', all: true, q: undefined })).toBe(
    `forge jobs list --type 'a b' --all`,
  );
  expect(curl('POST', 'http://x/_api', { reason: 'a b' })).toBe(
    `curl -X POST -H "Authorization: Bearer $FORGE_TOKEN" -H 'Content-Type: application/json' -d '{"reason":"a b"}' http://x/_api`,
  );
});

test('the day of a run is that of its zone', () => {
  const at = Date.parse('2026-11-19T23:30:00Z');
  expect(formatDay(at, 'Europe/Paris')).toBe('Fri 2026-11-20 00:30:00');
  expect(formatDay(at, 'America/New_York')).toBe('Thu 2026-11-19 18:30:00');
});
