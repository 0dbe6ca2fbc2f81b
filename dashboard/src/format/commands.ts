/** The commands that do what a button does. */
import { writeJson } from '../api/json';

/** Quote a word for a POSIX shell, unless it is plain. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Return a command line; undefined options are left out, and `true` is a flag. */
export function commandLine(
  words: readonly string[],
  options: Readonly<Record<string, string | number | bigint | boolean | null | undefined>> = {},
): string {
  const line = words.map(quote);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    line.push(value === true ? `--${name}` : `--${name} ${quote(`${value}`)}`);
  }
  return line.join(' ');
}

/** Return the request as a curl command; the token stays a variable. */
export function curl(method: string, url: string, body?: unknown): string {
  const parts = ['curl'];
  if (method !== 'GET') parts.push(`-X ${method}`);
  parts.push('-H "Authorization: Bearer $FORGE_TOKEN"');
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quote(writeJson(body))}`);
  }
  parts.push(quote(url));
  return parts.join(' ');
}
