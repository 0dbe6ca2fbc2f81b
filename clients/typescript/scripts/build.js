// Write dist/, what npm publishes.
import { execFileSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HOME = fileURLToPath(new URL('..', import.meta.url));
const TSC = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));

rmSync(`${HOME}/dist`, { recursive: true, force: true });
execFileSync(process.execPath, [TSC, '-p', `${HOME}/tsconfig.build.json`], { stdio: 'inherit' });
copyFileSync(`${HOME}/../../LICENSE`, `${HOME}/LICENSE`);
