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
import type { ParamsSchema } from '@/api/types';
import { type Field, fieldsOf } from './schemaFields';

interface Props {
  schema: ParamsSchema;
  values: Readonly<Record<string, unknown>>;
  onChange: (values: Record<string, unknown>) => void;
  /** The server's message about the parameter of this name. */
  errorOf: (key: string) => string | undefined;
  /** Suggestions for text fields. */
  deviceNames: string[];
}

/** A form made from a JSON schema: a new strategy needs no code here. */
export function SchemaForm({ schema, values, onChange, errorOf, deviceNames }: Props) {
  const fields = fieldsOf(schema);
  if (fields.length === 0)
    return (
      <Text size="sm" c="dimmed">
        This strategy has no parameters.
      </Text>
    );
  const set = (key: string, value: unknown) => onChange({ ...values, [key]: value });
  return (
    <SimpleGrid cols={2} spacing="md" verticalSpacing="sm">
      {fields.map((field) => (
        <FieldInput
          key={field.key}
          field={field}
          value={values[field.key] ?? field.default}
          error={errorOf(field.key)}
          deviceNames={deviceNames}
          onChange={(value) => set(field.key, value)}
        />
      ))}
    </SimpleGrid>
  );
}

interface InputProps {
  field: Field;
  value: unknown;
  error?: string;
  deviceNames: string[];
  onChange: (value: unknown) => void;
}

function FieldInput({ field, value, error, deviceNames, onChange }: InputProps) {
  const common = {
    label: field.label,
    description: field.help,
    error,
    size: 'sm',
    'data-testid': `param-${field.key}`,
  } as const;
  switch (field.kind) {
    case 'choice':
      return field.options.length <= 3 ? (
        <div>
          <Text size="sm" fw={500}>
            {field.label}
          </Text>
          <Text size="xs" c="dimmed" mb={5}>
            {field.help}
          </Text>
          <SegmentedControl
            size="xs"
            data={field.options}
            value={String(value)}
            onChange={onChange}
            fullWidth
            data-testid={`param-${field.key}`}
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
          data={field.options}
          value={String(value)}
          onChange={onChange}
          allowDeselect={false}
        />
      );
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
      return (
        <NumberInput
          {...common}
          value={typeof value === 'number' ? value : ''}
          min={field.min}
          max={field.max}
          allowDecimal={!field.integer}
          onChange={(next) =>
            typeof next === 'number' ? onChange(next) : field.optional && next === '' && onChange(null)
          }
        />
      );
    case 'text':
      return (
        <Autocomplete
          {...common}
          data={deviceNames}
          value={typeof value === 'string' ? value : ''}
          onChange={onChange}
          placeholder="automatic"
        />
      );
    case 'json':
      return <JsonInput {...common} value={value} onChange={onChange} />;
  }
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
