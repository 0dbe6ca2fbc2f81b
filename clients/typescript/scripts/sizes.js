// Bundle the client as an application does, and compare its size with the limits.
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

const SOURCE = fileURLToPath(new URL('../src', import.meta.url));
const ENTRY = `${SOURCE}/entry.ts`;
const TRACKER = "import { createJobTracker } from './index.js'; console.log(createJobTracker);";
// What an application imports, and the bytes that it may add to the line in the second place.
const IMPORTS = {
  tracker: [TRACKER, null, 3000],
  client: [
    `${TRACKER} import { ForgeClient } from './index.js'; console.log(ForgeClient);`,
    'tracker',
    1500,
  ],
  react: [
    `${TRACKER} import { useTracker } from './react.js'; console.log(useTracker);`,
    'tracker',
    1000,
  ],
};

/** Return the compressed bytes that a page loads with an import, and those that it loads later. */
async function measure(code) {
  const entry = {
    name: 'entry',
    resolveId: (id) => (id === ENTRY ? id : null),
    load: (id) => (id === ENTRY ? code : null),
  };
  const bundle = await rolldown({ input: ENTRY, plugins: [entry], external: ['react'] });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  const start = output.find((chunk) => chunk.isEntry);
  const atOnce = new Set([start.fileName]);
  for (const name of atOnce) {
    for (const imported of output.find((chunk) => chunk.fileName === name)?.imports ?? []) {
      atOnce.add(imported);
    }
  }
  const sizes = { atOnce: 0, later: 0 };
  for (const { fileName, code } of output) {
    sizes[atOnce.has(fileName) ? 'atOnce' : 'later'] += gzipSync(code, { level: 9 }).length;
  }
  return sizes;
}

const measured = {};
for (const [name, [code, base, limit]] of Object.entries(IMPORTS)) {
  const { atOnce, later } = await measure(code);
  measured[name] = atOnce;
  const added = atOnce - (base ? measured[base] : 0);
  const isSmall = added <= limit;
  const kind = base ? `more than the ${base}` : `at once, ${later} later`;
  console.log(`${name}: ${added} bytes ${kind}; limit ${limit}${isSmall ? '' : ' EXCEEDED'}`);
  if (!isSmall) process.exitCode = 1;
}
