import { beforeAll, expect, test, vi } from 'vitest';

let router: typeof import('../src/router.svelte');

beforeAll(async () => {
  vi.stubGlobal('location', { hash: '', href: 'http://forge.test/forge/' });
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('navigator', { onLine: true });
  router = await import('../src/router.svelte');
});

test('an address is a path and its filters', () => {
  expect(router.parseHash('#/jobs?status=failed&q=a%20b%26c')).toEqual({
    path: '/jobs',
    query: { status: 'failed', q: 'a b&c' },
  });
  expect(router.parseHash('').path).toBe('/');
  expect(router.parseHash('#nonsense').path).toBe('/');
});

test('links leave out filters without a value', () => {
  expect(router.href('/jobs', { status: 'failed', q: null, type: undefined, queue: '' })).toBe(
    '#/jobs?status=failed',
  );
});

test('patterns match whole paths and decode parameters', () => {
  expect(router.match('/types/:name', '/types/a%2Fb')).toEqual({ name: 'a/b' });
  expect(router.match('/types/:name', '/types/%zz')).toEqual({ name: '%zz' });
  expect(router.match('/jobs', '/jobs/')).toEqual({});
  expect(router.match('/jobs/:id', '/jobs')).toBeUndefined();
});
