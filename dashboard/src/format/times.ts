/** Durations and times in words. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Return a duration with its two largest units: `12 ms`, `3.1 s`, `4 m 10 s`, `3 d 4 h`. */
export function formatDuration(milliseconds: number): string {
  const sign = milliseconds < 0 ? '−' : '';
  const value = Math.abs(milliseconds);
  if (value < SECOND)
    return `${sign}${value > 0 && value < 10 ? short(value) : Math.round(value)} ms`;
  if (value < MINUTE - 50) return `${sign}${short(value / SECOND)} s`;
  const units: [number, string][] = [
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'm'],
    [SECOND, 's'],
  ];
  const at = units.findIndex(([size]) => value >= size - SECOND / 2);
  const [size, name] = units[at] ?? [SECOND, 's'];
  const [smaller, smallerName] = units[at + 1] ?? [size, name];
  const rounded = Math.round(value / smaller) * smaller;
  const rest = Math.round((rounded % size) / smaller);
  return `${sign}${Math.floor(rounded / size)} ${name}${rest ? ` ${rest} ${smallerName}` : ''}`;
}

/** Return milliseconds of the server as a duration; null, where nothing was measured, is `–`. */
export function formatMilliseconds(value: number | null): string {
  return value === null ? '–' : formatDuration(value);
}

/** Return how long ago a time was, or how far ahead it is: `4 s ago`, `in 2 m`. */
export function formatRelative(at: number, now: number): string {
  const distance = now - at;
  const size = Math.abs(distance);
  if (size < SECOND) return 'now';
  const coarse = coarseDuration(size);
  return distance > 0 ? `${coarse} ago` : `in ${coarse}`;
}

/** Return a duration in its largest unit. */
export function coarseDuration(milliseconds: number): string {
  if (milliseconds < MINUTE) return `${Math.floor(milliseconds / SECOND)} s`;
  if (milliseconds < HOUR) return `${Math.floor(milliseconds / MINUTE)} m`;
  if (milliseconds < DAY) return `${Math.floor(milliseconds / HOUR)} h`;
  return `${Math.floor(milliseconds / DAY)} d`;
}

/** Return the exact local time and UTC. */
export function formatExact(at: number): string {
  const date = new Date(at);
  const local = localTime(date, true);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const utc = date.toISOString().replace('T', ' ').replace('Z', '');
  return zone === 'UTC' ? `${utc} UTC` : `${local} ${zone}\n${utc} UTC`;
}

/** Return the local time of day, with the date unless it is today. */
export function formatClock(at: number, now: number): string {
  const date = new Date(at);
  const text = localTime(date, false);
  return date.toDateString() === new Date(now).toDateString() ? text.slice(11) : text;
}

/** Return the day and time in a zone: `Fri 2026-11-20 03:00:00`. */
export function formatDay(at: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone,
  }).formatToParts(at);
  const of = (type: string) => parts.find((part) => part.type === type)?.value ?? '';
  const day = `${of('weekday')} ${of('year')}-${of('month')}-${of('day')}`;
  return `${day} ${of('hour')}:${of('minute')}:${of('second')}`;
}

/** Parse a duration of the server, such as `30m`, as milliseconds. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = ''] = /^(-?\d+)(us|ms|s|m|h|d)$/.exec(text) ?? [];
  const sizes: Record<string, number> = {
    us: 0.001,
    ms: 1,
    s: SECOND,
    m: MINUTE,
    h: HOUR,
    d: DAY,
  };
  const size = sizes[unit];
  return number === undefined || size === undefined ? undefined : Number(number) * size;
}

function short(value: number): string {
  return value < 10 ? value.toFixed(1).replace(/\.0$/, '') : `${Math.round(value)}`;
}

function localTime(date: Date, isPrecise: boolean): string {
  const two = (value: number) => `${value}`.padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const fraction = isPrecise ? `.${`${date.getMilliseconds()}`.padStart(3, '0')}` : '';
  return `${day} ${time}${fraction}`;
}
