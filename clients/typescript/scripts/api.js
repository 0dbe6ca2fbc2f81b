// Write src/api.ts, the types of what the server sends, from openapi.json. With --check, compare.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const SOURCE = new URL('../../../docs/reference/openapi.json', import.meta.url);
const TARGET = new URL('../src/api.ts', import.meta.url);
const BIOME = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
const HEADER = '// Generated from docs/reference/openapi.json by `npm run api`.\n';
// The components that the client uses; those that they refer to are added.
const USED = [
  'ClientMessage',
  'DispatchOut',
  'JobOut',
  'JobPage',
  'LiveJob',
  'LiveProblem',
  'Problem',
  'RequestOut',
  'ServerMessage',
  'WatchTokenOut',
];
// Parts of the output for documents with paths.
const EMPTY = ['paths', 'webhooks', 'operations', '$defs'];

function withoutNoise(key, value) {
  // Titles repeat the names, and discriminators the types of their constants.
  return key === 'discriminator' || (key === 'title' && typeof value === 'string')
    ? undefined
    : value;
}

function usedSchemas(all) {
  const names = [...USED];
  for (const name of names) {
    const references = JSON.stringify(all[name]).matchAll(/#\/components\/schemas\/(\w+)/g);
    for (const [, found] of references) if (!names.includes(found)) names.push(found);
  }
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}

async function generate() {
  const { openapi, info, components } = JSON.parse(readFileSync(SOURCE, 'utf8'), withoutNoise);
  const document = { openapi, info, components: { schemas: usedSchemas(components.schemas) } };
  const nodes = await openapiTS(document, {
    alphabetize: true,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
  });
  const text = astToString(nodes.filter((node) => !EMPTY.includes(node.name?.text)));
  const format = [BIOME, 'format', `--stdin-file-path=${fileURLToPath(TARGET)}`];
  return execFileSync(process.execPath, format, { input: HEADER + text, encoding: 'utf8' });
}

const text = await generate();
if (!process.argv.includes('--check')) {
  writeFileSync(TARGET, text);
} else if (readFileSync(TARGET, 'utf8') !== text) {
  console.error('src/api.ts is out of date: run `make format` and commit it');
  process.exit(1);
}
