/** The part of charts that is loaded late: uPlot. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { type Chart, type ChartData, type ChartOptions, lonePlaces } from './time_chart';

const HEIGHT = 120;
const DAY = 86_400;
const FONT = '11px system-ui, sans-serif';

export function drawChart(target: HTMLElement, data: ChartData, options: ChartOptions): Chart {
  const chart = new uPlot(optionsOf(target, data, options), aligned(data), target);
  const observer = new ResizeObserver(() => {
    const width = target.clientWidth;
    if (width && width !== chart.width) chart.setSize({ width, height: HEIGHT });
  });
  observer.observe(target);
  return {
    update: (next) => chart.setData(aligned(next)),
    redraw: () => chart.redraw(),
    destroy: () => {
      observer.disconnect();
      chart.destroy();
    },
  };
}

function aligned({ times, lines }: ChartData): uPlot.AlignedData {
  return [[...times], ...lines.map(({ values }) => [...values])];
}

function optionsOf(target: HTMLElement, data: ChartData, options: ChartOptions): uPlot.Options {
  const colour = (name: string) => getComputedStyle(target).getPropertyValue(`--${name}`).trim();
  const axis = {
    font: FONT,
    stroke: () => colour('secondary'),
    grid: { stroke: () => colour('border'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: target.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { drag: { x: false, y: false }, y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, highest) => [0, (highest || 1) * 1.15] } },
    series: [
      {},
      ...data.lines.map(({ label, tone }) => ({
        label,
        stroke: () => colour(tone),
        width: 1.5,
        points: {
          show: false,
          size: 4,
          filter: (chart: uPlot, line: number) => lonePlaces(chart.data[line] ?? []),
        },
      })),
    ],
    axes: [
      { ...axis, size: 24, space: 64, values: (_, splits) => timeLabels(splits) },
      {
        ...axis,
        size: 56,
        space: 30,
        values: (_, splits) => splits.map((value) => options.format(value)),
      },
    ],
    hooks: { setCursor: [(chart) => options.onPoint(chart.cursor.idx ?? undefined)] },
  };
}

/** Times of day, or dates where the axis spans days; in the reader's zone. */
function timeLabels(splits: readonly number[]): string[] {
  const two = (value: number) => `${value}`.padStart(2, '0');
  const isLong = (splits[1] ?? 0) - (splits[0] ?? 0) >= DAY / 2;
  return splits.map((seconds) => {
    const date = new Date(seconds * 1000);
    return isLong
      ? `${two(date.getMonth() + 1)}-${two(date.getDate())}`
      : `${two(date.getHours())}:${two(date.getMinutes())}`;
  });
}
