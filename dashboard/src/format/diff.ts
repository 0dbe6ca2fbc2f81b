/** What differs between two texts, line by line. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
}

/** Lines that differ with a few around them, and how many are left out before them. */
export interface DiffPart {
  readonly omitted: number;
  readonly lines: readonly DiffLine[];
}

/** Above this many comparisons, lines that differ are shown as replaced all together. */
const LARGEST_TABLE = 4_000_000;
const CONTEXT = 3;

/** Return the lines of both texts in order, with the longest common part kept. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [
    ...a.slice(0, start).map(same),
    ...changes(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

/** Return the lines that differ, each with `context` lines around it. */
export function diffParts(lines: readonly DiffLine[], context = CONTEXT): DiffPart[] {
  const parts: { omitted: number; lines: DiffLine[] }[] = [];
  let last = -1;
  for (const [index, line] of lines.entries()) {
    const isNear = lines
      .slice(Math.max(0, index - context), index + context + 1)
      .some(({ kind }) => kind !== 'same');
    if (!isNear) continue;
    if (index !== last + 1 || !parts.length) parts.push({ omitted: index - last - 1, lines: [] });
    parts.at(-1)?.lines.push(line);
    last = index;
  }
  if (parts.length && last < lines.length - 1) {
    parts.push({ omitted: lines.length - 1 - last, lines: [] });
  }
  return parts;
}

function changes(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (!a.length || !b.length || a.length * b.length > LARGEST_TABLE) {
    return [...a.map(removed), ...b.map(added)];
  }
  const lengths = commonLengths(a, b);
  const width = b.length + 1;
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [old, now] = [a[i], b[j]];
    if (old !== undefined && old === now) {
      found.push({ kind: 'same', text: old });
      i++;
      j++;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      found.push(removed(old));
      i++;
    } else if (now !== undefined) {
      found.push(added(now));
      j++;
    }
  }
  return found;
}

/** Return the length of the longest common part of `a` from i and `b` from j, row by row. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint32Array {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      lengths[at] =
        a[i] === b[j]
          ? (lengths[at + width + 1] ?? 0) + 1
          : Math.max(lengths[at + width] ?? 0, lengths[at + 1] ?? 0);
    }
  }
  return lengths;
}
