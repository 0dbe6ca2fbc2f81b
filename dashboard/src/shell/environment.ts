/** What the server writes into the page: the environment's name, and where traces are shown. */
function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? '';
}

export const LABEL = meta('forge-label');
/** A URL with `{trace_id}`, or nothing. */
export const TRACE_URL = meta('forge-trace-url');
export const isProduction = /^(prod|live)/i.test(LABEL);
