import { describe, expect, test } from 'vitest';
import { formOf, inputOf } from '../src/screens/types/input_form';

const SCHEMA = {
  $defs: { Format: { enum: ['csv', 'pdf'], type: 'string' }, Page: { type: 'object' } },
  type: 'object',
  required: ['order', 'page'],
  properties: {
    order: { type: 'integer' },
    format: { $ref: '#/$defs/Format', default: 'csv' },
    share: { anyOf: [{ type: 'number' }, { type: 'null' }], default: null },
    urgent: { type: 'boolean' },
    either: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    page: { $ref: '#/$defs/Page' },
    note: { type: 'string', description: 'For the reader.' },
  },
};

describe('a form of a schema', () => {
  const form = formOf(SCHEMA);

  test('has a field for each plain value, and JSON for the rest', () => {
    expect(form.fields.map(({ name, kind }) => [name, kind])).toEqual([
      ['order', 'integer'],
      ['format', 'choice'],
      ['share', 'number'],
      ['urgent', 'choice'],
      ['note', 'text'],
    ]);
    expect(form.rest).toEqual(['either', 'page']);
    expect(form.skeleton).toEqual({ page: {} });
    expect(form.fields[1]?.hint).toBe('default: "csv"');
  });

  test('makes values of the types, and leaves out what is empty', () => {
    const texts = { order: '9007199254740993', format: 'pdf', share: '0.5', urgent: 'false' };

    const { input, problems } = inputOf(form, texts, { page: {}, either: 'x' });

    expect(problems).toEqual({});
    expect(input).toEqual({
      page: {},
      either: 'x',
      order: 9007199254740993n,
      format: 'pdf',
      share: 0.5,
      urgent: false,
    });
  });

  test.each([
    [{}, 'order', 'Required.'],
    [{ order: '1.5' }, 'order', 'Write a whole number.'],
    [{ order: '1', share: 'half' }, 'share', 'Write a number.'],
  ])('names what is wrong with %j', (texts, field, problem) => {
    expect(inputOf(form, texts, {}).problems).toEqual({ [field]: problem });
  });
});

test('an input without properties is JSON alone', () => {
  const form = formOf({ type: 'array' });

  expect(form.hasRest).toBe(true);
  expect(inputOf(form, {}, [1, 2]).input).toEqual([1, 2]);
  expect(formOf(null).fields).toEqual([]);
});
