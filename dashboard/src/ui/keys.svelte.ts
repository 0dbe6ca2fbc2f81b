/** Keys of the present screen; `?` lists them. */
import { untrack } from 'svelte';

export interface Key {
  /** One key such as `j`, or two in sequence such as `g j`. */
  readonly keys: string;
  readonly does: string;
  readonly run: () => void;
}

const SEQUENCE = 1000;

class Keys {
  known = $state.raw<readonly Key[]>([]);
  #first = '';
  #firstAt = 0;

  constructor() {
    document.addEventListener('keydown', (event) => this.#press(event));
  }

  /** Add keys; return how to remove them. */
  add(added: readonly Key[]): () => void {
    // Untracked: an effect that adds keys must not run again because others did.
    const change = (next: (known: readonly Key[]) => readonly Key[]) =>
      untrack(() => {
        this.known = next(this.known);
      });
    change((known) => [...known, ...added]);
    return () => change((known) => known.filter((key) => !added.includes(key)));
  }

  #press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    const isSecond = event.timeStamp - this.#firstAt < SEQUENCE;
    const sequence = isSecond ? `${this.#first} ${event.key}` : event.key;
    const found =
      this.known.findLast(({ keys }) => keys === sequence) ??
      this.known.findLast(({ keys }) => keys === event.key);
    this.#first = event.key;
    this.#firstAt = event.timeStamp;
    if (!found) return;
    event.preventDefault();
    this.#firstAt = 0;
    found.run();
  }
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export const keys = new Keys();

/** Keys of the component that calls it. */
export function useKeys(added: readonly Key[]): void {
  $effect(() => keys.add(added));
}
