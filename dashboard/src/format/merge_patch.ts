/** JSON merge patches (RFC 7396): what changes one JSON value into another. */
type Properties = Readonly<Record<string, unknown>>;

export interface MergePatch {
  /** Undefined if both values are equal. */
  readonly patch: unknown;
  /** Paths that change to null, which a merge patch cannot express. */
  readonly nullPaths: readonly string[];
}

export function mergePatchOf(before: unknown, after: unknown): MergePatch {
  const nullPaths: string[] = [];
  if (isEqual(before, after)) return { patch: undefined, nullPaths };
  if (after === null) return { patch: null, nullPaths: ['$'] };
  return { patch: patchOf(before, after, '$', nullPaths), nullPaths };
}

/** Whether two JSON values are equal; the order of keys does not count. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || (a === 0 && b === 0)) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((part, index) => isEqual(part, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]))
  );
}

function patchOf(before: unknown, after: unknown, path: string, nullPaths: string[]): unknown {
  if (!isObject(after)) return after;
  const known = isObject(before) ? before : {};
  const patch: Record<string, unknown> = Object.create(null);
  for (const name of Object.keys(known)) {
    if (!Object.hasOwn(after, name)) patch[name] = null;
  }
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(known, name) ? known[name] : undefined;
    if (Object.hasOwn(known, name) && isEqual(old, value)) continue;
    if (value === null) nullPaths.push(`${path}.${name}`);
    else patch[name] = patchOf(old, value, `${path}.${name}`, nullPaths);
  }
  return patch;
}

function isObject(value: unknown): value is Properties {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
