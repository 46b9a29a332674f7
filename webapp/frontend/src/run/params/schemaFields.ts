/** The fields of a form as values, and those of a strategy's form from its JSON schema. */
import type { ParamsSchema, SchemaProperty } from '@/api/types';
import { capital } from '@/format/words';

interface Common<Key> {
  key: Key;
  label: string;
  help?: string;
  /** What an absent value is. */
  default?: unknown;
  /** May be empty (null); `placeholder` says what that means. */
  optional?: boolean;
  placeholder?: string;
}

export interface NumberField {
  kind: 'number';
  optional?: boolean;
  integer?: boolean;
  min?: number;
  max?: number;
  step?: number;
  suffix?: string;
}

interface ChoiceField {
  kind: 'choice';
  options: readonly (string | { value: string; label: string })[];
  /** The option that stands for null. */
  none?: string;
  /** Options that need more room than the field has; few short ones lie side by side. */
  looks?: 'wide' | 'segments';
}

export type Field<Key extends string = string> = Common<Key> &
  (ChoiceField | NumberField | { kind: 'switch' | 'text' | 'json' });

/** The value that counts where this is typed: null for an empty field that may be so, undefined for the one before. */
export function counted(typed: number | string, field: NumberField): number | null | undefined {
  if (String(typed).trim() === '') return field.optional ? null : undefined;
  const number = Number(typed);
  const isOne = Number.isFinite(number) && (!field.integer || Number.isSafeInteger(number));
  return isOne && number >= (field.min ?? -Infinity) ? Math.min(number, field.max ?? Infinity) : undefined;
}

/** The division made by hand has an editor of its own. */
const PLAN = 'plan';

export function fieldsOf(schema: ParamsSchema): Field[] {
  return Object.entries(schema.properties ?? {})
    .filter(([key]) => key !== PLAN)
    .map(([key, property]) => fieldOf(key, property, schema));
}

function fieldOf(key: string, property: SchemaProperty, schema: ParamsSchema): Field {
  const { shape, optional } = resolve(property, schema);
  const common: Common<string> = {
    key,
    optional,
    label: labelOf(key),
    help: property.description ?? shape.description ?? '',
    default: property.default,
  };
  if (shape.enum?.every((value) => typeof value === 'string'))
    return { ...common, kind: 'choice', options: shape.enum };
  if (shape.type === 'boolean') return { ...common, kind: 'switch' };
  if (shape.type === 'integer' || shape.type === 'number') {
    const integer = shape.type === 'integer';
    return {
      ...common,
      kind: 'number',
      integer,
      min: lowest(shape, integer),
      max: shape.maximum ?? shape.exclusiveMaximum,
    };
  }
  return { ...common, kind: shape.type === 'string' ? 'text' : 'json' };
}

/** Follows references; "X or null" becomes an optional X. */
function resolve(
  property: SchemaProperty,
  schema: ParamsSchema,
): { shape: SchemaProperty; optional: boolean } {
  const followed = follow(property, schema);
  const choices = followed.anyOf?.map((choice) => follow(choice, schema)) ?? [];
  const real = choices.filter((choice) => choice.type !== 'null');
  const [only] = real;
  if (only && real.length === 1) return { shape: only, optional: real.length < choices.length };
  return { shape: followed, optional: choices.length > real.length };
}

function follow(property: SchemaProperty, schema: ParamsSchema): SchemaProperty {
  const name = property.$ref?.split('/').at(-1);
  return (name && schema.$defs?.[name]) || property;
}

function lowest(shape: SchemaProperty, integer: boolean): number | undefined {
  if (shape.exclusiveMinimum === undefined) return shape.minimum;
  return integer ? shape.exclusiveMinimum + 1 : shape.exclusiveMinimum;
}

/** `causal_trim` → "Causal trim". */
function labelOf(key: string): string {
  const words = key.replaceAll('_', ' ');
  return capital(words);
}
