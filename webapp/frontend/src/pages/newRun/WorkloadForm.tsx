import { SegmentedControl, Stack, Switch, Text, Textarea } from '@mantine/core';
import type { ModelRow } from '@/api/types';
import { Fields } from '@/run/params/Fields';
import type { Field } from '@/run/params/schemaFields';
import { type Draft, readsText, type Work } from '@/run/request/draft';
import { ArrivalsForm } from './ArrivalsForm';
import { PicturePicker } from './PicturePicker';

interface Props {
  draft: Draft;
  model: ModelRow | undefined;
  set: (patch: Partial<Draft>) => void;
  setWork: (patch: Partial<Work>) => void;
  errorOf: (path: string) => string | undefined;
}

/** The workload: prompt, number of tokens, requests and their arrival. */
export function WorkloadForm({ draft, model, set, setWork, errorOf }: Props) {
  const generates = model?.has_head ?? true;
  const { workload } = draft;
  const traced = workload.pattern === 'trace';
  const serves = workload.pattern === 'serve';
  const asksText = readsText(model) && !traced && !serves;
  const asksLength = serves || (asksText && draft.promptKind === 'length');
  const common = { values: workload, set: setWork, errorOf: (key: string) => errorOf(`workload.${key}`) };
  return (
    <>
      {model && model.image_rows > 0 && (
        <PicturePicker
          model={model}
          image={workload.image}
          seed={draft.seed}
          error={errorOf('workload.image')}
          onImage={(image) => setWork({ image })}
        />
      )}
      {asksText && (
        <SegmentedControl
          display="flex"
          size="xs"
          mb="sm"
          w="fit-content"
          value={draft.promptKind}
          onChange={(kind) => set({ promptKind: kind as Draft['promptKind'] })}
          data={[
            { value: 'text', label: 'Prompt text' },
            { value: 'length', label: 'Random tokens' },
          ]}
          data-testid="prompt-kind"
        />
      )}
      {asksText && draft.promptKind === 'text' && (
        <Textarea
          autosize
          minRows={1}
          maxRows={6}
          value={workload.prompt}
          placeholder="The text that the model continues"
          aria-label="Prompt"
          onChange={(event) => setWork({ prompt: event.currentTarget.value })}
          error={errorOf('workload.prompt')}
          data-testid="prompt"
          mb="sm"
        />
      )}
      {asksText && draft.promptKind === 'text' && model?.chats && !draft.randomWeights && (
        <Switch
          size="xs"
          mb="sm"
          checked={workload.chat}
          onChange={(event) => setWork({ chat: event.currentTarget.checked })}
          label="Ask it as in a chat, by the model's chat template"
          data-testid="chat"
        />
      )}
      <Stack gap="sm">
        {!traced && (
          <Fields
            {...common}
            cols={asksLength ? 3 : 2}
            fields={sizes(serves, asksLength, generates, model)}
          />
        )}
        {!traced && !generates && (
          <Text size="sm" c="dimmed">
            {model?.num_classes ? `A classifier: one of ${model.num_classes}` : 'An encoder: hidden states'}
          </Text>
        )}
        {generates && <Fields {...common} cols={1} fields={lengths(serves, model)} />}
        {generates && <Fields {...common} cols={3} fields={sampling(workload)} />}
      </Stack>
      <ArrivalsForm draft={draft} model={model} set={set} setWork={setWork} errorOf={errorOf} />
    </>
  );
}

type WorkField = Field<keyof Work> | false;
const WHOLE = { kind: 'number', integer: true, min: 1 } as const;

const sizes = (serves: boolean, asksLength: boolean, generates: boolean, model?: ModelRow): WorkField[] => {
  const most = serves ? ', at most' : '';
  const rows = model && model.max_positions - model.image_rows;
  return [
    asksLength && { ...WHOLE, key: 'prompt_tokens', label: `Prompt tokens${most}`, max: rows },
    generates && { ...WHOLE, key: 'new_tokens', label: `New tokens${most}`, max: model?.max_positions },
    { ...WHOLE, key: 'requests', label: `Requests${serves ? ' in all, at most' : ''}`, max: 10_000 },
  ];
};

const lengths = (serves: boolean, model?: ModelRow): WorkField[] => [
  {
    ...WHOLE,
    key: 'assumed_tokens',
    label: 'Length that plans assume',
    help: 'Tokens of prompt and answer together, for answers of unknown length; 0: the length is known.',
    min: 0,
    max: model?.max_positions,
  },
  !serves && {
    kind: 'switch',
    key: 'kv_cache',
    label: 'Keep keys and values from token to token',
    help: 'Off: every token is a pass over all tokens so far (use_cache=False).',
  },
];

/** Whether tokens are drawn at random, and among which. */
const sampling = ({ temperature }: Work): WorkField[] => [
  {
    kind: 'number',
    key: 'temperature',
    label: 'Temperature',
    help: '0: the most likely token',
    min: 0,
    max: 10,
    step: 0.1,
  },
  temperature > 0 && {
    kind: 'number',
    key: 'top_p',
    label: 'Top-p',
    help: 'The fewest that together are so likely',
    min: 0.01,
    max: 1,
    step: 0.05,
  },
  temperature > 0 && {
    kind: 'number',
    key: 'top_k',
    label: 'Top-k',
    help: 'The k most likely; 0: all',
    integer: true,
    min: 0,
  },
];
