import {
  Autocomplete,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Switch,
  Text,
  Textarea,
} from '@mantine/core';
import { useState } from 'react';
import { counted, type Field, type NumberField } from './schemaFields';

interface Props<Values extends object> {
  /** The fields of the form; false: one that does not count at present. */
  fields: readonly (Field<keyof Values & string> | false)[];
  values: Readonly<Values>;
  set: (patch: Partial<Values>) => void;
  /** The server's message about the field of this key. */
  errorOf: (key: string) => string | undefined;
  cols?: number;
  size?: 'xs' | 'sm';
  /** What text fields suggest. */
  suggestions?: string[];
  testId?: (key: string) => string;
}

/** The one form: fields as values, in columns. */
export function Fields<Values extends object>(props: Props<Values>) {
  const { fields, values, set, errorOf, cols = 2, size = 'sm', suggestions = [], testId = dashed } = props;
  return (
    <SimpleGrid cols={cols} spacing={size === 'xs' ? 'xs' : 'md'} verticalSpacing="sm">
      {fields.map(
        (field) =>
          field && (
            <FieldInput
              key={field.key}
              field={field}
              value={values[field.key] ?? field.default}
              error={errorOf(field.key)}
              size={size}
              suggestions={suggestions}
              testId={testId(field.key)}
              onChange={(value) => set({ [field.key]: value } as Partial<Values>)}
            />
          ),
      )}
    </SimpleGrid>
  );
}

/** `dilationKind` and `compute_model` → `dilation-kind` and `compute-model`. */
const dashed = (key: string) =>
  key.replaceAll('_', '-').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

interface InputProps {
  field: Field;
  value: unknown;
  error?: string;
  size: 'xs' | 'sm';
  suggestions: string[];
  testId: string;
  onChange: (value: unknown) => void;
}

function FieldInput({ field, value, error, size, suggestions, testId, onChange }: InputProps) {
  const common = {
    label: field.label,
    description: field.help,
    placeholder: field.placeholder,
    error,
    size,
    'data-testid': testId,
  } as const;
  switch (field.kind) {
    case 'choice': {
      const [data, chosen] = [[...field.options], String(value ?? field.none)];
      const choose = (option: string | null) => onChange(option === field.none ? null : option);
      return data.length <= 3 || field.looks === 'segments' ? (
        <div>
          <Text size="sm" fw={500}>
            {field.label}
          </Text>
          <Text size="xs" c="dimmed" mb={5}>
            {field.help}
          </Text>
          <SegmentedControl
            size="xs"
            data={data}
            value={chosen}
            onChange={choose}
            fullWidth
            aria-label={field.label}
            data-testid={testId}
          />
          {error && (
            <Text size="xs" c="red" mt={4}>
              {error}
            </Text>
          )}
        </div>
      ) : (
        <Select
          {...common}
          data={data}
          value={chosen}
          onChange={choose}
          allowDeselect={false}
          {...(field.looks === 'wide' && {
            style: { gridColumn: 'span 2' },
            comboboxProps: { width: 340, position: 'bottom-start' },
          })}
        />
      );
    }
    case 'switch':
      return (
        <Switch
          {...common}
          mt={4}
          checked={Boolean(value)}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case 'number':
      return <NumberOf {...common} field={field} value={value} onChange={onChange} />;
    case 'text':
      return (
        <Autocomplete
          {...common}
          data={suggestions}
          value={typeof value === 'string' ? value : ''}
          onChange={onChange}
          placeholder="automatic"
        />
      );
    case 'json':
      return <JsonInput {...common} value={value} onChange={onChange} />;
  }
}

/** A number as it is typed; whoever leaves the field sees the one that counts. */
function NumberOf({
  field,
  value,
  onChange,
  ...common
}: {
  field: NumberField;
  value: unknown;
  onChange: (value: number | null) => void;
  label: string;
  placeholder?: string;
}) {
  const [typed, setTyped] = useState<number | string | null>(null);
  const { min, max, step, suffix, integer } = field;
  const number = typeof value === 'number' ? value : '';
  return (
    <NumberInput
      {...common}
      placeholder={common.placeholder ?? String(number)}
      value={typed ?? number}
      min={min}
      max={max}
      step={step}
      suffix={suffix}
      decimalScale={suffix ? 3 : undefined}
      allowDecimal={!integer}
      allowNegative={min === undefined || min < 0}
      clampBehavior="none"
      trimLeadingZeroesOnBlur={false}
      onBlur={() => setTyped(null)}
      onChange={(next) => {
        const found = counted(next, field);
        setTyped(found === next ? null : next);
        if (found !== undefined) onChange(found);
      }}
    />
  );
}

function JsonInput({
  value,
  onChange,
  error,
  ...common
}: {
  value: unknown;
  onChange: (value: unknown) => void;
  error?: string;
  label: string;
}) {
  const [text, setText] = useState(() => JSON.stringify(value ?? null));
  const [wrong, setWrong] = useState('');
  const read = (next: string) => {
    setText(next);
    try {
      onChange(JSON.parse(next));
      setWrong('');
    } catch {
      setWrong('This is not valid JSON.');
    }
  };
  return (
    <Textarea
      {...common}
      autosize
      error={wrong || error}
      value={text}
      onChange={(event) => read(event.currentTarget.value)}
    />
  );
}
