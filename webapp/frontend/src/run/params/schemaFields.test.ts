import { describe, expect, it } from 'vitest';
import { counted, fieldsOf } from './schemaFields';

describe('the form of a strategy', () => {
  it('has one field per parameter, with label, help and default', () => {
    const [field] = fieldsOf({
      properties: { causal_trim: { type: 'boolean', default: false, description: 'Skip keys.' } },
    });
    expect(field).toEqual({
      key: 'causal_trim',
      label: 'Causal trim',
      help: 'Skip keys.',
      default: false,
      optional: false,
      kind: 'switch',
    });
  });

  it('offers the values of an enumeration', () => {
    const [field] = fieldsOf({ properties: { order: { enum: ['auto', 'naive'], type: 'string' } } });
    expect(field).toMatchObject({ kind: 'choice', options: ['auto', 'naive'] });
  });

  it('bounds numbers as the schema does', () => {
    const fields = fieldsOf({
      properties: {
        stages: { type: 'integer', exclusiveMinimum: 0, maximum: 8 },
        share: { type: 'number', minimum: 0, exclusiveMaximum: 1 },
      },
    });
    expect(fields[0]).toMatchObject({ kind: 'number', integer: true, min: 1, max: 8 });
    expect(fields[1]).toMatchObject({ kind: 'number', integer: false, min: 0, max: 1 });
  });

  it('takes "number or null" as an optional number, through references too', () => {
    const fields = fieldsOf({
      properties: {
        limit: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] },
        mode: { $ref: '#/$defs/Mode' },
      },
      $defs: { Mode: { type: 'string', enum: ['fast', 'exact'] } },
    });
    expect(fields[0]).toMatchObject({ kind: 'number', min: 1, optional: true });
    expect(fields[1]).toMatchObject({ kind: 'choice', options: ['fast', 'exact'] });
  });

  it('falls back to JSON for lists and objects', () => {
    expect(fieldsOf({ properties: { ratios: { type: 'array', items: { type: 'number' } } } })[0]?.kind).toBe(
      'json',
    );
  });

  it('has no fields for a strategy without parameters', () => {
    expect(fieldsOf({})).toEqual([]);
  });
});

describe('a number that is typed', () => {
  const field = { kind: 'number', min: 1, max: 512, integer: true } as const;
  it.each([
    ['24', 24],
    ['0', undefined],
    ['', undefined],
    ['-', undefined],
    ['5000', 512],
    ['2.5', undefined],
  ])('%s counts as %s, undefined being the one before', (typed, number) =>
    expect(counted(typed, field)).toBe(number),
  );

  it('is none where the field may be empty, and no other than what is typed', () => {
    expect(counted('', { kind: 'number', optional: true, min: 0.001 })).toBeNull();
    expect(counted('0.', { kind: 'number' })).toBe(0);
    const seed = { kind: 'number', integer: true, min: 0 } as const;
    expect(counted('12345678901234567890', seed)).toBeUndefined();
    expect(counted('12345678901234', seed)).toBe(12_345_678_901_234);
  });
});
