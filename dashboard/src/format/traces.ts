/** Traces: the id in a traceparent, and the page that shows it. */

/** Return the trace id of a W3C traceparent. */
export function traceIdOf(traceparent: string | null): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent ?? '')?.[1];
}

/** Return the page of a trace for a template with `{trace_id}`; only web pages are linked. */
export function tracePage(template: string, traceId: string): string | undefined {
  return /^https?:\/\//.test(template) ? template.replaceAll('{trace_id}', traceId) : undefined;
}
