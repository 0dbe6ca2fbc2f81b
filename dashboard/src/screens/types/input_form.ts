/** A form for the input of a job type: flat fields of its schema; the rest is written as JSON. */
import { writeJson } from '../../api/json';

type Schema = Readonly<Record<string, unknown>>;

export type Choice = string | number | boolean;

export interface FormField {
  readonly name: string;
  readonly kind: 'text' | 'integer' | 'number' | 'choice';
  readonly choices: readonly Choice[];
  readonly isRequired: boolean;
  readonly description: string | undefined;
  /** The default, or what the value looks like. */
  readonly hint: string;
}

export interface InputForm {
  readonly fields: readonly FormField[];
  /** Properties that are no flat fields. */
  readonly rest: readonly string[];
  /** Whether there is more than fields: other properties, or a value that is no object. */
  readonly hasRest: boolean;
  /** What the JSON of the rest begins with. */
  readonly skeleton: unknown;
}

export interface FormInput {
  readonly input: unknown;
  /** By field: why its text is no value. */
  readonly problems: Readonly<Record<string, string>>;
}

export function formOf(schema: Schema | null): InputForm {
  const root = resolve(schema ?? {}, schema ?? {});
  const properties = root.properties as Record<string, Schema> | undefined;
  if (!properties) return { fields: [], rest: [], hasRest: true, skeleton: {} };
  const required = new Set(root.required as string[] | undefined);
  const fields: FormField[] = [];
  const rest: string[] = [];
  const skeleton: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    const field = fieldOf(name, property, schema ?? {}, required.has(name));
    if (field) fields.push(field);
    else {
      rest.push(name);
      if (required.has(name)) skeleton[name] = emptyOf(resolve(property, schema ?? {}));
    }
  }
  const isOpen =
    root.additionalProperties === true || typeof root.additionalProperties === 'object';
  return { fields, rest, hasRest: rest.length > 0 || isOpen, skeleton };
}

/** Return the input that the texts of fields and the JSON of the rest make; empty texts are left out. */
export function inputOf(
  form: InputForm,
  texts: Readonly<Record<string, string>>,
  rest: unknown,
): FormInput {
  const problems: Record<string, string> = {};
  if (!form.fields.length) return { input: rest, problems };
  const input: Record<string, unknown> = { ...(isObject(rest) ? rest : {}) };
  for (const field of form.fields) {
    const text = texts[field.name] ?? '';
    if (text === '') {
      if (field.isRequired) problems[field.name] = 'Required.';
      continue;
    }
    const value = parsedValue(field, text);
    if (value === undefined) problems[field.name] = problemOf(field);
    else input[field.name] = value;
  }
  return { input, problems };
}

function fieldOf(
  name: string,
  property: Schema,
  root: Schema,
  isRequired: boolean,
): FormField | undefined {
  const schema = withoutNull(resolve(property, root), root);
  if (!schema) return undefined;
  const field = {
    name,
    isRequired,
    description: textOf(property.description) ?? textOf(schema.description),
    hint: hintOf(property, schema),
    choices: [],
  };
  const choices = choicesOf(schema);
  if (choices) return { ...field, kind: 'choice', choices };
  switch (schema.type) {
    case 'string':
      return { ...field, kind: 'text' };
    case 'integer':
    case 'number':
      return { ...field, kind: schema.type };
    case 'boolean':
      return { ...field, kind: 'choice', choices: [true, false] };
    default:
      return undefined;
  }
}

function choicesOf(schema: Schema): Choice[] | undefined {
  const all = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : [];
  const plain = all.filter((value) => ['string', 'number', 'boolean'].includes(typeof value));
  return all.length && plain.length === all.length ? plain : undefined;
}

/** Follow a reference such as `#/$defs/Format`. */
function resolve(schema: Schema, root: Schema): Schema {
  const reference = schema.$ref;
  if (typeof reference !== 'string') return schema;
  const name = /^#\/\$defs\/(.+)$/.exec(reference)?.[1];
  const found = name && (root.$defs as Record<string, Schema> | undefined)?.[name];
  return found ? { ...found, ...schema, $ref: undefined } : {};
}

/** Return the one alternative beside null of an optional value; undefined if there are more. */
function withoutNull(schema: Schema, root: Schema): Schema | undefined {
  if (!Array.isArray(schema.anyOf)) return schema;
  const parts = (schema.anyOf as Schema[])
    .map((part) => resolve(part, root))
    .filter(({ type }) => type !== 'null');
  return parts.length === 1 ? parts[0] : undefined;
}

function parsedValue(field: FormField, text: string): unknown {
  switch (field.kind) {
    case 'text':
      return text;
    case 'choice':
      return field.choices.find((choice) => `${choice}` === text);
    case 'integer':
      if (!/^\s*-?\d+\s*$/.test(text)) return undefined;
      return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text.trim());
    case 'number': {
      const value = Number(text);
      return text.trim() && Number.isFinite(value) ? value : undefined;
    }
  }
}

function problemOf({ kind }: FormField): string {
  return kind === 'integer' ? 'Write a whole number.' : 'Write a number.';
}

function hintOf(property: Schema, schema: Schema): string {
  const standard = property.default;
  if (standard !== undefined && standard !== null) return `default: ${writeJson(standard)}`;
  const example = (property.examples ?? schema.examples) as unknown[] | undefined;
  if (example?.length) return `such as ${writeJson(example[0])}`;
  return textOf(schema.format) ?? '';
}

function emptyOf(schema: Schema): unknown {
  if (schema.type === 'array') return [];
  return schema.type === 'object' || schema.properties ? {} : null;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value ? value : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
