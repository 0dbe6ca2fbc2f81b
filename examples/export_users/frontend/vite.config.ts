import { svelte } from '@sveltejs/vite-plugin-svelte';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { $lib: at('./src/lib') } },
  build: {
    rolldownOptions: {
      input: { index: at('./index.html'), svelte: at('./svelte.html'), react: at('./react.html') },
    },
  },
});
