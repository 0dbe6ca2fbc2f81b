import { expect, test } from 'vitest';
import { diffLines, diffParts } from '../src/format/diff';
import { isEqual, mergePatchOf } from '../src/format/merge_patch';

const MARKS = { same: ' ', removed: '-', added: '+' };

function shown(before: string, after: string): string {
  return diffLines(before, after)
    .map(({ kind, text }) => MARKS[kind] + text)
    .join('|');
}

test.each([
  ['a\nb\nc', 'a\nb\nc', ' a| b| c'],
  ['a\nb\nc', 'a\nx\nc', ' a|-b|+x| c'],
  ['a\nb', 'a\nb\nc', ' a| b|+c'],
  ['a\na', 'a', ' a|-a'],
  ['a\nb\nc\nd', 'b\nc\na\nd', '-a| b| c|+a| d'],
  ['', 'a', '-|+a'],
])('the lines of %j become %j', (before, after, expected) => {
  expect(shown(before, after)).toBe(expected);
});

test('a large change is shown as replaced', () => {
  const before = Array.from({ length: 5000 }, (_, n) => `old ${n}`).join('\n');
  const after = Array.from({ length: 5000 }, (_, n) => `new ${n}`).join('\n');
  const kinds = diffLines(`first\n${before}`, `first\n${after}`).map(({ kind }) => kind);

  expect(kinds.filter((kind) => kind === 'removed')).toHaveLength(5000);
  expect(kinds.filter((kind) => kind === 'added')).toHaveLength(5000);
});

test('lines far from a change are left out', () => {
  const before = Array.from({ length: 30 }, (_, n) => `${n}`);
  const after = before.with(10, 'ten').with(25, 'twenty-five');
  const parts = diffParts(diffLines(before.join('\n'), after.join('\n')), 2);

  expect(parts.map(({ omitted, lines }) => [omitted, lines.length])).toEqual([
    [8, 6],
    [10, 6],
    [2, 0],
  ]);
  expect(diffParts(diffLines('a', 'a'))).toEqual([]);
});

test.each([
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, undefined, []],
  [{ a: 1, b: 2 }, { a: 1, b: 3 }, { b: 3 }, []],
  [{ a: 1, b: 2 }, { a: 1 }, { b: null }, []],
  [{ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { c: 3 } }, []],
  [{ a: [1, 2] }, { a: [1, null] }, { a: [1, null] }, []],
  [{ a: 1 }, { a: null }, {}, ['$.a']],
  [{ a: null, b: 1 }, { a: null, b: 2 }, { b: 2 }, []],
  [{ a: 1 }, { a: { b: null } }, { a: {} }, ['$.a.b']],
  [{ a: 1 }, [1], [1], []],
  [1, null, null, ['$']],
  [{}, JSON.parse('{"__proto__": 1}'), JSON.parse('{"__proto__": 1}'), []],
])('the patch of %j to %j is %j', (before, after, patch, nullPaths) => {
  const found = mergePatchOf(before, after);
  expect(isEqual(found.patch, patch)).toBe(true);
  expect(found.nullPaths).toEqual(nullPaths);
});

test('large integers are compared exactly', () => {
  const found = mergePatchOf({ a: 2n ** 53n + 1n, b: 1n }, { a: 2n ** 53n + 2n, b: 1n });
  expect(found.patch).toEqual({ a: 2n ** 53n + 2n });
});
