import { Text } from '@mantine/core';
import type { ParamsSchema } from '@/api/types';
import { Fields } from './Fields';
import { fieldsOf } from './schemaFields';

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
  return (
    <Fields
      fields={fields}
      values={values}
      set={(patch) => onChange({ ...values, ...patch })}
      errorOf={errorOf}
      suggestions={deviceNames}
      testId={(key) => `param-${key}`}
    />
  );
}
