import { Stack } from '@mantine/core';
import { useState } from 'react';
import { api } from '@/api/client';
import type { ModelRow, RecordedRequests } from '@/api/types';
import { seconds } from '@/format/units';
import { Fields } from '@/run/params/Fields';
import type { Field } from '@/run/params/schemaFields';
import { type Draft, isChunked, isQueued, weightsOf, whoseTokens, type Work } from '@/run/request/draft';
import { RecordedFile } from './RecordedFile';

interface Props {
  draft: Draft;
  model: ModelRow | undefined;
  set: (patch: Partial<Draft>) => void;
  setWork: (patch: Partial<Work>) => void;
  errorOf: (path: string) => string | undefined;
}

const PATTERNS: { value: Work['pattern']; label: string }[] = [
  { value: 'sporadic', label: 'One by one, each after the answer to the last' },
  { value: 'bursty', label: 'All at once' },
  { value: 'poisson', label: 'At random, at a mean rate (Poisson)' },
  { value: 'users', label: 'From users who wait for their answers' },
  { value: 'trace', label: 'As in a file (trace, prompts)' },
  { value: 'serve', label: 'Serve: from people and programs, while it runs' },
];

const SCHEDULERS: { value: Work['scheduler']; label: string }[] = [
  { value: 'auto', label: 'As the method allows: requests join others where they can' },
  { value: 'own', label: "The method's own, if it has one" },
  { value: 'fcfs', label: 'First come, first served: one batch after the other' },
  { value: 'continuous', label: 'Continuous batching: requests join between two tokens of others' },
  { value: 'chunked', label: 'Chunked prefill: the same, with prompts in parts' },
  { value: 'disaggregated', label: 'Disaggregated: prompts on one device, tokens on another' },
];

/** A service for one request would be of little use, and people do not wait for whole answers of others. */
const SERVED_REQUESTS = 100;
const SERVICE: Partial<Work> = { scheduler: 'auto', max_batch: 4 };

const NEW_TOKENS = { kind: 'number', key: 'new_tokens', integer: true, min: 1 } as const;
const OBJECTIVE = { kind: 'number', suffix: ' s', placeholder: 'none', optional: true, min: 0.001 } as const;

/** When requests arrive, and by which scheduler they are admitted. */
const arrivalFields = (work: Work): (Field<keyof Work> | false)[] => [
  { kind: 'choice', key: 'pattern', label: 'Requests arrive', looks: 'wide', options: PATTERNS },
  work.pattern === 'poisson' && {
    kind: 'number',
    key: 'rate_per_s',
    label: 'Requests per second',
    min: 0.001,
  },
  work.pattern === 'users' && { kind: 'number', key: 'users', label: 'Users', integer: true, min: 1 },
  work.pattern === 'users' && {
    kind: 'number',
    key: 'think_s',
    label: 'Pause before the next',
    suffix: ' s',
    min: 0,
  },
];

/** How many of those that wait are served together, and the objectives of goodput. */
const queueFields = (work: Work): (Field<keyof Work> | false)[] => [
  { kind: 'number', key: 'max_batch', label: 'Served together, at most', integer: true, min: 1 },
  { kind: 'choice', key: 'scheduler', label: 'Requests admitted', looks: 'wide', options: SCHEDULERS },
  isChunked(work) && {
    kind: 'number',
    key: 'chunk_tokens',
    label: 'Rows of a step, at most',
    integer: true,
    min: 1,
  },
  { ...OBJECTIVE, key: 'slo_first_token_s', label: 'Objective: first token' },
  { ...OBJECTIVE, key: 'slo_per_token_s', label: 'Objective: per later token' },
];

/** When requests arrive, how many of those that wait are served together, and the objectives of goodput. */
export function ArrivalsForm(props: Props) {
  const { setWork, errorOf } = props;
  const { workload } = props.draft;
  const change = (patch: Partial<Work>) => {
    const begins = patch.pattern === 'serve';
    const many = begins && workload.requests === 1 && { requests: SERVED_REQUESTS };
    setWork({ ...patch, ...(begins && SERVICE), ...many });
  };
  const common = {
    cols: 3,
    values: workload,
    set: change,
    errorOf: (key: string) => errorOf(`workload.${key}`),
  };
  return (
    <Stack gap="sm" mt="sm" data-testid="arrivals">
      <Fields {...common} fields={arrivalFields(workload)} />
      {workload.pattern === 'trace' && <TraceFile {...props} />}
      {isQueued(workload) && <Fields {...common} fields={queueFields(workload)} />}
    </Stack>
  );
}

/** A file of requests, ours, Azure's or BurstGPT's, or of prompts (JSONL), which the server reads. */
function TraceFile({ draft, model, set, setWork, errorOf }: Props) {
  const { tokensOf, workload } = draft;
  const { trace, new_tokens } = workload;
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
      form.append('new_tokens', String(new_tokens));
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
      <RecordedFile
        choose="File of requests or prompts"
        about='Requests: CSV with at_s, prompt_tokens, new_tokens, or a trace of Azure or BurstGPT. Prompts: JSONL, such as {"prompt": "Hello"}.'
        example="all: or requests=60, stretch=10"
        taken={
          told &&
          [told, tokensOf && `Prompts with the tokens of ${tokensOf}.`, notes].filter(Boolean).join(' ')
        }
        asked={[mine, new_tokens, draft.seed, perSecond].join()}
        read={read}
        onRead={(found) => {
          set({ tokensOf: found?.tokensOf ?? null });
          setWork({ trace: found?.requests ?? [] });
          setNotes(found?.notes.join(' ') ?? '');
        }}
        testId="trace"
      />
      {hasPrompts && (
        <Fields
          cols={3}
          fields={[
            { ...NEW_TOKENS, label: 'New tokens, where none are said' },
            {
              kind: 'number',
              key: 'perSecond',
              label: 'Requests per second',
              placeholder: 'as the file says, or all at once',
              optional: true,
              min: 0.001,
            },
          ]}
          values={{ new_tokens, perSecond }}
          set={({ perSecond: rate, ...patch }) => {
            if (rate !== undefined) setPerSecond(rate);
            else setWork(patch);
          }}
          errorOf={(key) => errorOf(`workload.${key}`)}
        />
      )}
    </>
  );
}
