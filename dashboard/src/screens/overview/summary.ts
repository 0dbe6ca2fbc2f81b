/** Is everything all right? One sentence, and the figures behind it. */
import type { FindingOut, OverviewOut } from '../../api/schema';
import { type Count, plural } from '../../format/numbers';
import type { Tone } from '../../format/statuses';

export interface Verdict {
  readonly text: string;
  readonly tone: Tone;
}

/** Say how things are: what is urgent first. */
export function verdictOf(overview: OverviewOut, findings: readonly FindingOut[]): Verdict {
  const of = (severity: FindingOut['severity']) =>
    findings.filter((finding) => finding.severity === severity).length;
  const [problems, warnings, infos] = [of('problem'), of('warning'), of('info')];
  const parts = [
    problems ? plural(problems, 'problem') : '',
    warnings ? plural(warnings, 'warning') : '',
    infos ? plural(infos, 'note') : '',
  ].filter(Boolean);
  if (problems) return { text: `${joined(parts)}: look at these first.`, tone: 'failed' };
  if (warnings) return { text: `No problems. ${joined(parts)}.`, tone: 'retry' };
  const { alive } = overview.workers;
  const work = `${plural(alive, 'worker')} ${alive === 1 ? 'claims' : 'claim'} jobs`;
  const notes = infos ? `, ${plural(infos, 'note')}` : '';
  return { text: `Everything is all right: ${work}${notes}.`, tone: 'completed' };
}

/** Jobs that wait, due or not. */
export function waitingOf({ jobs }: OverviewOut): Count {
  const parts = [jobs.pending, jobs.retry].filter((part) => part !== undefined);
  return {
    count: parts.reduce((sum, { count }) => sum + Number(count), 0),
    precision: parts.find(({ precision }) => precision !== 'exact')?.precision ?? 'exact',
  };
}

function joined(parts: readonly string[]): string {
  const last = parts.at(-1) ?? '';
  return parts.length > 1 ? `${parts.slice(0, -1).join(', ')} and ${last}` : last;
}
