import { expect, test } from 'vitest';

const FORBIDDEN = [
  'fetch',
  'WebSocket',
  'addEventListener',
  'location',
  'document',
  'crypto',
  'setTimeout',
  'setInterval',
];

/** Make every use of these globals an error. */
function forbid(names: string[]): void {
  for (const name of names) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => {
        throw new Error(`${name} was used`);
      },
    });
  }
}

test('importing the package and creating trackers opens nothing and uses no globals', async () => {
  const modules = await Promise.all([import('../src/index.js'), import('../src/react.js')]);
  const saved = FORBIDDEN.map(
    (name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const,
  );

  forbid(FORBIDDEN);
  try {
    const [{ configure, createJobTracker, ForgeClient }] = modules;
    configure({ token: () => 'secret' });
    const client = new ForgeClient({ url: 'http://forge.test' });
    const tracker = createJobTracker('export_users', { client });
    const values: unknown[] = [];
    tracker.subscribe((job) => values.push(job));
    tracker.cleanup();

    expect(values).toEqual([null]);
    expect(tracker.connection.get()).toBe('idle');
    expect(tracker.error.get()).toBeNull();
  } finally {
    for (const [name, descriptor] of saved) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else Reflect.deleteProperty(globalThis, name);
    }
  }
});

test('attaching without an address says what is missing', async () => {
  const { createJobTracker } = await import('../src/index.js');

  expect(() => createJobTracker('export_users').attach('a', 'token')).toThrow(/Invalid URL/);
});
