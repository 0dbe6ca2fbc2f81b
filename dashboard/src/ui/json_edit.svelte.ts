/** A JSON value that a person edits as text. */
import type { ForgeError } from '@forge-jobs/client';
import { parseJson, writeJson } from '../api/json';
import { type MergePatch, mergePatchOf } from '../format/merge_patch';

interface Parsed {
  readonly value?: unknown;
  /** Why the text is not JSON. */
  readonly problem?: string;
}

export class JsonEdit {
  readonly original: unknown;
  readonly originalText: string;
  text = $state('');
  /** What the server objects to in the text, as it is now. */
  rejection = $state.raw<ForgeError>();
  isChecking = $state(false);
  readonly parsed: Parsed = $derived(parse(this.text));
  readonly #change: MergePatch = $derived.by(() => this.#compare());

  constructor(original: unknown) {
    this.original = original;
    this.originalText = writeJson(original, 2);
    this.text = this.originalText;
  }

  get value(): unknown {
    return this.parsed.value;
  }

  /** The merge patch that changes the original into the text; undefined if they are equal. */
  get patch(): unknown {
    return this.#change.patch;
  }

  get isChanged(): boolean {
    return this.#change.patch !== undefined;
  }

  /** Paths that change to null, which `patch` cannot express; `value` can. */
  get nullPaths(): readonly string[] {
    return this.#change.nullPaths;
  }

  /** Whether it is JSON that the server has not rejected. */
  get isReady(): boolean {
    return this.parsed.problem === undefined && !this.rejection;
  }

  /** Write the text as it would be stored; what is not JSON stays. */
  format(): void {
    if (this.parsed.problem === undefined) this.text = writeJson(this.parsed.value, 2);
  }

  reset(): void {
    this.text = this.originalText;
  }

  #compare(): MergePatch {
    return this.parsed.problem === undefined
      ? mergePatchOf(this.original, this.parsed.value)
      : { patch: undefined, nullPaths: [] };
  }
}

function parse(text: string): Parsed {
  if (!text.trim()) return { problem: 'It is empty; write a JSON value such as {}.' };
  try {
    // Before large integers are marked, so that the position in the message is that of the text.
    JSON.parse(text);
    return { value: parseJson(text) };
  } catch (cause) {
    return { problem: (cause as Error).message };
  }
}
