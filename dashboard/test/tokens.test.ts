import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const CSS = readFileSync(new URL('../src/styles/tokens.css', import.meta.url), 'utf8');
const TEXT = 4.5;
const MARK = 3;

function colours(selector: string): Record<string, string> {
  const block = CSS.slice(CSS.indexOf(selector)).split('}', 1)[0] ?? '';
  return Object.fromEntries(
    [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]),
  );
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const STATUSES = ['waiting', 'running', 'completed', 'retry', 'failed', 'cancelled'];
const WORDS = ['text', 'secondary', 'accent', ...STATUSES];

describe.each([
  ['light', ':root {'],
  ['dark', ':root[data-theme="dark"] {'],
])('%s theme', (_, selector) => {
  const token = colours(selector);
  const of = (name: string) => token[name] ?? '#000000';

  test.each(WORDS)('%s can be read on each background', (word) => {
    for (const background of ['page', 'raised', 'selected']) {
      expect(contrast(of(word), of(background)), background).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test('text on the accent and on the failure colour can be read', () => {
    expect(contrast(of('on-accent'), of('accent'))).toBeGreaterThanOrEqual(TEXT);
    expect(contrast(of('page'), of('failed'))).toBeGreaterThanOrEqual(TEXT);
  });

  test('borders of controls can be seen', () => {
    expect(contrast(of('control'), of('page'))).toBeGreaterThanOrEqual(MARK);
    expect(contrast(of('control'), of('raised'))).toBeGreaterThanOrEqual(MARK);
  });
});

test('both themes have the same tokens', () => {
  const [light, dark] = [colours(':root {'), colours(':root[data-theme="dark"] {')];
  expect(Object.keys(light)).toEqual(Object.keys(dark));
  expect(Object.keys(light).length).toBeGreaterThan(10);
});
