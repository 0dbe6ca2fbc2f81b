/** Lines over time, drawn by uPlot; its code is loaded when the first chart is shown. */
export interface ChartLine {
  readonly label: string;
  /** A token of the theme. */
  readonly tone: string;
  /** One for each time; null leaves a gap. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  /** Seconds since the epoch. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
}

export interface Chart {
  update(data: ChartData): void;
  /** Draw again in the colours of the theme. */
  redraw(): void;
  destroy(): void;
}

export interface ChartOptions {
  readonly format: (value: number) => string;
  /** Called with the place under the pointer, or undefined. */
  readonly onPoint: (index: number | undefined) => void;
}

/** The places of values without a neighbour: they are no line, and are drawn as points. */
export function lonePlaces(values: ArrayLike<number | null | undefined>): number[] {
  const has = (place: number) => values[place] !== null && values[place] !== undefined;
  const places = Array.from(values, (_, place) => place);
  return places.filter((place) => has(place) && !has(place - 1) && !has(place + 1));
}
