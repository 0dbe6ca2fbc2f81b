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
