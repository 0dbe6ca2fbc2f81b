/** Numbers beside the words of the navigation: what waits for a person. */
import { untrack } from 'svelte';

export interface NavigationCount {
  readonly text: string;
  readonly title: string;
}

class Counts {
  #known = $state.raw<Readonly<Record<string, NavigationCount | undefined>>>({});

  of(path: string): NavigationCount | undefined {
    return this.#known[path];
  }

  set(path: string, count: NavigationCount | undefined): void {
    // Untracked: an effect that sets a count must not run again because another one did.
    untrack(() => {
      const known = this.#known[path];
      if (known?.text !== count?.text) this.#known = { ...this.#known, [path]: count };
    });
  }
}

export const counts = new Counts();
