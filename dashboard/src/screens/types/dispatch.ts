/** Dispatching a job: the request, and the command that does the same. */
import { writeJson } from '../../api/json';
import type { DispatchOut } from '../../api/schema';
import { commandLine, quote } from '../../format/commands';
import type { Action } from '../../ui/action';

/** The options that the form asks for, as texts; an empty one is left out. */
export interface DispatchTexts {
  readonly priority: string;
  readonly delay: string;
  readonly queue: string;
  readonly idempotency_key: string;
  readonly tags: string;
  readonly tenant_id: string;
}

export const NO_OPTIONS: DispatchTexts = {
  priority: '',
  delay: '',
  queue: '',
  idempotency_key: '',
  tags: '',
  tenant_id: '',
};

export function dispatchAction(type: string, input: unknown, texts: DispatchTexts): Action {
  const options = optionsOf(texts);
  return {
    route: 'POST /_api/jobs/{job_type}/dispatch',
    path: `/_api/jobs/${encodeURIComponent(type)}/dispatch`,
    label: 'Dispatch job…',
    body: () => ({ args: input, ...options }),
    command: () => command(type, input, texts),
    done: (answer) => {
      const { job_id, deduplicated } = answer as DispatchOut;
      return {
        text: deduplicated ? 'A job with this key exists already.' : `Dispatched ${type}.`,
        link: { href: `#/jobs/${job_id}`, text: 'Show the job' },
      };
    },
  };
}

export function tagsOf(text: string): string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
}

/** Whether a text is empty or an integer of 64 bits, such as a tenant has. */
export function isTenant(text: string): boolean {
  return (
    text === '' || (/^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text))
  );
}

function optionsOf({ tags, tenant_id, ...texts }: DispatchTexts): Record<string, unknown> {
  const options: Record<string, unknown> = Object.fromEntries(
    Object.entries(texts).filter(([, text]) => text),
  );
  const tagged = tagsOf(tags);
  if (tagged.length) options.tags = tagged;
  if (tenant_id) {
    options.tenant_id = isTenant(tenant_id) ? numberOf(tenant_id) : tenant_id;
  }
  return options;
}

function numberOf(text: string): number | bigint {
  return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
}

function command(type: string, input: unknown, texts: DispatchTexts): string {
  const { priority, delay, queue, idempotency_key, tags, tenant_id } = texts;
  const words = ['forge', 'dispatch', type, writeJson(input)];
  const line = commandLine(words, {
    priority,
    delay,
    queue,
    'idempotency-key': idempotency_key,
    'tenant-id': tenant_id,
  });
  return [line, ...tagsOf(tags).map((tag) => `--tag ${quote(tag)}`)].join(' ');
}
