/** Reads and writes JSON whose integers may exceed 2^53: those are bigints. */
import type { JsonCodec } from '@forge-jobs/client';

/** A string, which is passed over, or an integer that a double may not hold. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;
/** Marks integers in the text between the two steps; no document can contain it. */
const MARK = `${crypto.getRandomValues(new Uint32Array(4)).join('')}:`;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

export function parseJson(text: string): unknown {
  if (!text) return undefined;
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKENS, (token) =>
    token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${MARK}${token}"`,
  );
  return JSON.parse(marked, (_, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

export function writeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(
    value,
    (_, part) => (typeof part === 'bigint' ? `${MARK}${part}` : part),
    indent,
  );
  return text === undefined ? '' : text.replace(MARKED, '$1');
}

export const codec: JsonCodec = {
  parse: parseJson,
  stringify: (value) => (value === undefined ? undefined : writeJson(value)),
};
