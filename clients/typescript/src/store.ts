/** A value that changes: also a Svelte store. */
export interface Readable<T> {
  /** Call `run` with the value now and after each change; return how to stop. */
  subscribe(run: (value: T) => void): () => void;
  /** Return the present value. */
  get(): T;
}

export interface Writable<T> extends Readable<T> {
  set(value: T): void;
}

export function writable<T>(value: T): Writable<T> {
  const subscribers = new Set<() => void>();
  return {
    subscribe(run) {
      // A function of its own, so that one function can subscribe twice.
      const subscriber = () => run(value);
      subscribers.add(subscriber);
      subscriber();
      return () => {
        subscribers.delete(subscriber);
      };
    },
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const subscriber of subscribers) subscriber();
    },
  };
}
