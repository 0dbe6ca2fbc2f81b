import { defineConfig } from 'vitest/config';

const react = { environment: 'happy-dom', include: ['test/react/*.test.tsx'] };

export default defineConfig({
  test: {
    restoreMocks: true,
    unstubGlobals: true,
    projects: [
      { extends: true, test: { name: 'client', include: ['test/*.test.ts'] } },
      { extends: true, test: { name: 'react 19', ...react } },
      {
        extends: true,
        resolve: { alias: [{ find: /^react(-dom)?(?=\/|$)/, replacement: 'react$1-18' }] },
        test: {
          name: 'react 18',
          ...react,
          exclude: ['test/react/activity.test.tsx'],
          setupFiles: ['test/react/version_18.ts'],
        },
      },
    ],
  },
});
