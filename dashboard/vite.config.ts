import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [
    svelte({
      // From the content alone, so that every machine builds the same files.
      compilerOptions: { cssHash: ({ hash, css }) => `s-${hash(css)}` },
    }),
  ],
  // Relative addresses work under any prefix.
  base: './',
  resolve: {
    alias: [
      { find: /^@forge-jobs\/client$/, replacement: at('../clients/typescript/src/index.ts') },
      { find: /^@forge-jobs\/client\/(.*)$/, replacement: at('../clients/typescript/src/$1.ts') },
    ],
  },
  build: {
    target: 'es2022',
    outDir: at('../src/forge/http/dashboard/built'),
    emptyOutDir: true,
    modulePreload: false,
    // A data: address is blocked by the Content Security Policy of everything but images.
    assetsInlineLimit: 0,
    // The licenses of the packages whose code is in the built files: the wheel passes them on.
    license: { fileName: 'licenses.md' },
    reportCompressedSize: false,
  },
  test: { include: ['test/**/*.test.ts'], environment: 'node' },
});
