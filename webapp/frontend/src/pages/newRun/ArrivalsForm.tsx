import { NumberInput, Select, SimpleGrid } from '@mantine/core';
import { useState } from 'react';
import { api } from '@/api/client';
import type { ModelRow, RecordedRequests } from '@/api/types';
import { seconds } from '@/format/units';
import { type Arrivals, type Draft, isChunked, isQueued, weightsOf, whoseTokens } from '@/run/request/draft';
import { RecordedFile } from './RecordedFile';

interface Props {
  draft: Draft;
  model: ModelRow | undefined;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

const PATTERNS: { value: Arrivals['pattern']; label: string }[] = [
  { value: 'sporadic', label: 'One by one, each after the answer to the last' },
  { value: 'bursty', label: 'All at once' },
  { value: 'poisson', label: 'At random, at a mean rate (Poisson)' },
  { value: 'users', label: 'From users who wait for their answers' },
  { value: 'trace', label: 'As in a file (trace, prompts)' },
  { value: 'serve', label: 'Serve: from people and programs, while it runs' },
];

const SCHEDULERS: { value: Arrivals['scheduler']; label: string }[] = [
  { value: 'auto', label: 'As the method allows: requests join others where they can' },
  { value: 'own', label: "The method's own, if it has one" },
  { value: 'fcfs', label: 'First come, first served: one batch after the other' },
  { value: 'continuous', label: 'Continuous batching: requests join between two tokens of others' },
  { value: 'chunked', label: 'Chunked prefill: the same, with prompts in parts' },
  { value: 'disaggregated', label: 'Disaggregated: prompts on one device, tokens on another' },
];

/** A service for one request would be of little use, and people do not wait for whole answers of others. */
const SERVED_REQUESTS = 100;
const SERVICE: Pick<Arrivals, 'scheduler' | 'maxBatch'> = { scheduler: 'auto', maxBatch: 4 };

/** When requests arrive, how many of those that wait are served together, and the objectives of goodput. */
export function ArrivalsForm({ draft, model, set, errorOf }: Props) {
  const { arrivals } = draft;
  const change = (patch: Partial<Arrivals>) => set({ arrivals: { ...arrivals, ...patch } });
  const choose = (pattern: Arrivals['pattern']) =>
    set({
      arrivals: { ...arrivals, pattern, ...(pattern === 'serve' && SERVICE) },
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
      {arrivals.pattern === 'trace' && <TraceFile draft={draft} model={model} change={change} set={set} />}
      {isQueued(arrivals) && (
        <>
          <Figure
            label="Served together, at most"
            whole
            value={arrivals.maxBatch}
            error={errorOf('workload.max_batch')}
            onChange={(value) => value && change({ maxBatch: value })}
          />
          <Select
            label="Requests admitted"
            data={SCHEDULERS}
            allowDeselect={false}
            value={arrivals.scheduler}
            error={errorOf('workload.scheduler')}
            comboboxProps={{ width: 340, position: 'bottom-start' }}
            onChange={(scheduler) => scheduler && change({ scheduler: scheduler as Arrivals['scheduler'] })}
            data-testid="scheduler"
          />
          {isChunked(arrivals) && (
            <Figure
              label="Rows of a step, at most"
              whole
              value={arrivals.chunkTokens}
              error={errorOf('workload.chunk_tokens')}
              onChange={(value) => value && change({ chunkTokens: value })}
            />
          )}
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
  draft: Draft;
  model: ModelRow | undefined;
  change: (patch: Partial<Arrivals>) => void;
  set: (patch: Partial<Draft>) => void;
}

/** A file of requests, ours, Azure's or BurstGPT's, or of prompts (JSONL), which the server reads. */
function TraceFile({ draft, model, change, set }: TraceFileProps) {
  const { trace, tokensOf } = draft.arrivals;
  const [perSecond, setPerSecond] = useState<number | null>(null);
  const [notes, setNotes] = useState('');
  const [hasPrompts, setHasPrompts] = useState(false);
  const mine = whoseTokens(draft, model);
  const read = async (file: File, part: string, signal: AbortSignal) => {
    const form = new FormData();
    form.append('file', file);
    form.append('options', part);
    const ofPrompts = (await file.slice(0, 1_000).text()).trimStart().startsWith('{');
    setHasPrompts(ofPrompts);
    if (ofPrompts) {
      form.append('model', draft.model);
      if (weightsOf(draft, model)) form.append('weights', 'random');
      form.append('new_tokens', String(draft.newTokens));
      form.append('seed', String(draft.seed));
      if (perSecond) form.append('rate_per_s', String(perSecond));
    }
    const found = await api.upload<RecordedRequests>(ofPrompts ? '/prompts' : '/requests', form, signal);
    return { ...found, tokensOf: ofPrompts ? mine : null };
  };
  const last = trace.at(-1);
  const count = `${trace.length} ${trace.length === 1 ? 'request' : 'requests'}`;
  const told = last && `${count}, the last at ${seconds(last.at_s)}.`;
  return (
    <>
      <div style={{ gridColumn: '1 / -1' }}>
        <RecordedFile
          choose="File of requests or prompts"
          about='Requests: CSV with at_s, prompt_tokens, new_tokens, or a trace of Azure or BurstGPT. Prompts: JSONL, such as {"prompt": "Hello"}.'
          example="all: or requests=60, stretch=10"
          taken={
            told &&
            [told, tokensOf && `Prompts with the tokens of ${tokensOf}.`, notes].filter(Boolean).join(' ')
          }
          asked={[mine, draft.newTokens, draft.seed, perSecond].join()}
          read={read}
          onRead={(found) => {
            change({ trace: found?.requests ?? [], tokensOf: found?.tokensOf ?? null });
            setNotes(found?.notes.join(' ') ?? '');
          }}
          testId="trace"
        />
      </div>
      {hasPrompts && (
        <>
          <Figure
            label="New tokens, where none are said"
            whole
            value={draft.newTokens}
            onChange={(value) => value && set({ newTokens: value })}
          />
          <Figure
            label="Requests per second"
            placeholder="as the file says, or all at once"
            value={perSecond}
            onChange={(value) => setPerSecond(value || null)}
          />
        </>
      )}
    </>
  );
}
