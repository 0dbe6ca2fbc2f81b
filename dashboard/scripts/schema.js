// Write src/api/schema.ts, the types of what the server sends, from openapi.json. With --check,
// compare.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const SOURCE = new URL('../../docs/reference/openapi.json', import.meta.url);
const TARGET = new URL('../src/api/schema.ts', import.meta.url);
const BIOME = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
const HEADER = '// Generated from docs/reference/openapi.json by `npm run schema`.\n';
// Parts of the output for documents with paths.
const EMPTY = ['paths', 'webhooks', 'operations', '$defs'];

function withoutNoise(key, value) {
  // Titles repeat the names, and discriminators the types of their constants.
  return key === 'discriminator' || (key === 'title' && typeof value === 'string')
    ? undefined
    : value;
}

const { openapi, info, components } = JSON.parse(readFileSync(SOURCE, 'utf8'), withoutNoise);
const document = { openapi, info, components: { schemas: components.schemas } };
const nodes = await openapiTS(document, {
  alphabetize: true,
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
});
const declarations = astToString(nodes.filter((node) => !EMPTY.includes(node.name?.text)));
const format = [BIOME, 'format', `--stdin-file-path=${fileURLToPath(TARGET)}`];
const text = execFileSync(process.execPath, format, {
  input: HEADER + declarations,
  encoding: 'utf8',
});
if (!process.argv.includes('--check')) {
  writeFileSync(TARGET, text);
} else if (readFileSync(TARGET, 'utf8') !== text) {
  console.error('src/api/schema.ts is out of date: run `make format` and commit it');
  process.exit(1);
}
