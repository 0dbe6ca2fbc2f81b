/** A list that changes in place: rows do not move, new ones wait until they are wanted. */
interface Row {
  readonly id: string;
}

export class LiveList<Item extends Row> {
  shown = $state.raw<readonly Item[]>([]);
  #newest = $state.raw<readonly Item[]>([]);
  /** How many rows wait above; the page may have been filled by them. */
  readonly arrived: number = $derived.by(() => {
    const known = new Set(this.shown.map(({ id }) => id));
    return this.#newest.filter(({ id }) => !known.has(id)).length;
  });
  readonly isFull: boolean = $derived(
    this.#newest.length > 0 && this.arrived === this.#newest.length,
  );
  /** Ids of rows that the newest page should have and has not: they match no longer. */
  readonly gone: ReadonlySet<string> = $derived.by(() => {
    const present = new Set(this.#newest.map(({ id }) => id));
    const last = this.#newest.at(-1)?.id;
    // Ids grow with time: what is older than the last row of the page is on the next one.
    const isOnPage = (id: string) => last === undefined || id >= last;
    return new Set(
      this.shown.filter(({ id }) => isOnPage(id) && !present.has(id)).map(({ id }) => id),
    );
  });

  /** Begin with these rows. */
  reset(items: readonly Item[]): void {
    this.shown = items;
    this.#newest = items;
  }

  /** Take a newer page: known rows change, others wait. */
  update(items: readonly Item[]): void {
    const byId = new Map(items.map((item) => [item.id, item]));
    this.shown = this.shown.map((item) => byId.get(item.id) ?? item);
    this.#newest = items;
    if (!this.shown.length) this.shown = items;
  }

  /** Show what has arrived. */
  reveal(): void {
    this.shown = this.#newest;
  }
}
