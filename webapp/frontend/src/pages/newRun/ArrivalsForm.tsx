import { Button, FileButton, Group, NumberInput, Select, SimpleGrid, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import type { RecordedRequests } from '@/api/types';
import { type Arrivals, type Draft, isQueued } from '@/run/request/draft';

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

/** A file of requests, ours, Azure's or BurstGPT's, which the server reads. */
function TraceFile({ trace, onTrace }: TraceFileProps) {
  const [options, setOptions] = useState('');
  const [notes, setNotes] = useState('');
  const [error, setError] = useState('');
  const read = async (file: File | null) => {
    if (!file) return;
    const form = new FormData();
    form.append('file', file);
    form.append('options', options);
    try {
      const found = await api.upload<RecordedRequests>('/requests', form);
      onTrace(found.requests);
      setNotes(found.notes.join(' '));
      setError('');
    } catch (refusal) {
      setError(sentence(refusal));
    }
  };
  const last = trace.at(-1);
  return (
    <div>
      <TextInput
        label="Trace"
        aria-label="Part of the trace's file"
        placeholder="all: or requests=60, stretch=10"
        value={options}
        onChange={(event) => setOptions(event.currentTarget.value)}
        data-testid="trace-options"
      />
      <Group gap="xs" mt={6}>
        <FileButton onChange={read}>
          {(props) => (
            <Button {...props} size="xs" variant="default" data-testid="trace-file">
              Choose a CSV file
            </Button>
          )}
        </FileButton>
        {last && <Text size="sm">{`${trace.length} requests in ${last.at_s} s`}</Text>}
      </Group>
      <Text size="xs" c={error ? 'red' : 'dimmed'} mt={4} role={error ? 'alert' : undefined}>
        {error || notes || 'Columns at_s, prompt_tokens, new_tokens; or a trace of Azure or BurstGPT'}
      </Text>
    </div>
  );
}
