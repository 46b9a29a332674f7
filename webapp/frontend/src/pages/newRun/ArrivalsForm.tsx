import { FileButton, Button, Group, NumberInput, Select, SimpleGrid, Text } from '@mantine/core';
import { useState } from 'react';
import { type Arrivals, type Draft, isQueued } from '@/run/request/draft';
import { parseTrace } from '@/run/request/trace';

interface Props {
  draft: Draft;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

const PATTERNS: { value: Arrivals['pattern']; label: string }[] = [
  { value: 'sporadic', label: 'One by one, each after the answer to the last' },
  { value: 'bursty', label: 'All at once' },
  { value: 'poisson', label: 'At random, at a mean rate (Poisson)' },
  { value: 'users', label: 'From users who wait for their answers' },
  { value: 'trace', label: 'As in a file (trace)' },
  { value: 'serve', label: 'Serve: from people and programs, while it runs' },
];

/** A service for one request would be of little use. */
const SERVED_REQUESTS = 100;

/** When requests arrive, how many of those that wait are served together, and the objectives of goodput. */
export function ArrivalsForm({ draft, set, errorOf }: Props) {
  const { arrivals } = draft;
  const change = (patch: Partial<Arrivals>) => set({ arrivals: { ...arrivals, ...patch } });
  const choose = (pattern: Arrivals['pattern']) =>
    set({
      arrivals: { ...arrivals, pattern },
      ...(pattern === 'serve' && draft.requests === 1 && { requests: SERVED_REQUESTS }),
    });
  return (
    <SimpleGrid cols={3} spacing="md" mt="sm" data-testid="arrivals">
      <Select
        label="Requests arrive"
        style={{ gridColumn: 'span 2' }}
        data={PATTERNS}
        allowDeselect={false}
        value={arrivals.pattern}
        comboboxProps={{ width: 340, position: 'bottom-start' }}
        onChange={(pattern) => pattern && choose(pattern as Arrivals['pattern'])}
        data-testid="pattern"
      />
      {arrivals.pattern === 'poisson' && (
        <Figure
          label="Requests per second"
          value={arrivals.ratePerSecond}
          error={errorOf('workload.rate_per_s')}
          onChange={(value) => value && change({ ratePerSecond: value })}
        />
      )}
      {arrivals.pattern === 'users' && (
        <>
          <Figure
            label="Users"
            whole
            value={arrivals.users}
            error={errorOf('workload.users')}
            onChange={(value) => value && change({ users: value })}
          />
          <Figure
            label="Pause before the next"
            suffix=" s"
            value={arrivals.think_s}
            error={errorOf('workload.think_s')}
            onChange={(value) => change({ think_s: value ?? 0 })}
          />
        </>
      )}
      {arrivals.pattern === 'trace' && (
        <TraceFile trace={arrivals.trace} onTrace={(trace) => change({ trace })} />
      )}
      {isQueued(arrivals) && (
        <>
          <Figure
            label="Served together, at most"
            whole
            value={arrivals.maxBatch}
            error={errorOf('workload.max_batch')}
            onChange={(value) => value && change({ maxBatch: value })}
          />
          <Figure
            label="Objective: first token"
            suffix=" s"
            placeholder="none"
            value={arrivals.firstToken_s}
            error={errorOf('workload.slo_first_token_s')}
            onChange={(value) => change({ firstToken_s: value || null })}
          />
          <Figure
            label="Objective: per later token"
            suffix=" s"
            placeholder="none"
            value={arrivals.perToken_s}
            error={errorOf('workload.slo_per_token_s')}
            onChange={(value) => change({ perToken_s: value || null })}
          />
        </>
      )}
    </SimpleGrid>
  );
}

interface FigureProps {
  label: string;
  value: number | null;
  whole?: boolean;
  suffix?: string;
  placeholder?: string;
  error?: string;
  onChange: (value: number | null) => void;
}

function Figure({ label, value, whole, suffix, placeholder, error, onChange }: FigureProps) {
  return (
    <NumberInput
      label={label}
      value={value ?? ''}
      allowDecimal={!whole}
      allowNegative={false}
      suffix={suffix}
      placeholder={placeholder}
      error={error}
      onChange={(next) => onChange(typeof next === 'number' ? next : null)}
    />
  );
}

interface TraceFileProps {
  trace: Arrivals['trace'];
  onTrace: (trace: Arrivals['trace']) => void;
}

/** Reads a CSV file of at_s, prompt_tokens and new_tokens in the browser. */
function TraceFile({ trace, onTrace }: TraceFileProps) {
  const [error, setError] = useState('');
  const read = async (file: File | null) => {
    if (!file) return;
    const found = parseTrace(await file.text());
    setError(typeof found === 'string' ? found : '');
    if (typeof found !== 'string') onTrace(found);
  };
  const last = trace.at(-1);
  return (
    <div>
      <Text size="sm" fw={500}>
        Trace
      </Text>
      <Group gap="xs">
        <FileButton onChange={read} accept=".csv,text/csv">
          {(props) => (
            <Button {...props} size="xs" variant="default">
              Choose a CSV file
            </Button>
          )}
        </FileButton>
        {last && <Text size="sm">{`${trace.length} requests in ${last.at_s} s`}</Text>}
      </Group>
      <Text size="xs" c={error ? 'red' : 'dimmed'} mt={4} role={error ? 'alert' : undefined}>
        {error || 'Columns at_s, prompt_tokens, new_tokens'}
      </Text>
    </div>
  );
}
