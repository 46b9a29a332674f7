import { NumberInput, SegmentedControl, SimpleGrid, Switch, Text, Textarea } from '@mantine/core';
import type { ModelRow } from '@/api/types';
import { type Draft, readsText } from '@/run/request/draft';
import { ArrivalsForm } from './ArrivalsForm';
import { PicturePicker } from './PicturePicker';
import { SamplingForm } from './SamplingForm';

interface Props {
  draft: Draft;
  model: ModelRow | undefined;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

/** The workload: prompt, number of tokens, requests and their arrival. */
export function WorkloadForm({ draft, model, set, errorOf }: Props) {
  const generates = model?.has_head ?? true;
  const traced = draft.arrivals.pattern === 'trace';
  const serves = draft.arrivals.pattern === 'serve';
  const asksText = readsText(model) && !traced && !serves;
  const asksLength = serves || (asksText && draft.promptKind === 'length');
  const most = serves ? ', at most' : '';
  return (
    <>
      {model && model.image_rows > 0 && (
        <PicturePicker
          model={model}
          image={draft.image}
          seed={draft.seed}
          error={errorOf('workload.image')}
          onImage={(image) => set({ image })}
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
          value={draft.prompt}
          placeholder="The text that the model continues"
          aria-label="Prompt"
          onChange={(event) => set({ prompt: event.currentTarget.value })}
          error={errorOf('workload.prompt')}
          data-testid="prompt"
          mb="sm"
        />
      )}
      {asksText && draft.promptKind === 'text' && model?.chats && !draft.randomWeights && (
        <Switch
          size="xs"
          mb="sm"
          checked={draft.chat}
          onChange={(event) => set({ chat: event.currentTarget.checked })}
          label="Ask it as in a chat, by the model's chat template"
          data-testid="chat"
        />
      )}
      {!traced && (
        <SimpleGrid cols={asksLength ? 3 : 2} spacing="md">
          {asksLength && (
            <Whole
              label={`Prompt tokens${most}`}
              value={draft.promptTokens}
              min={1}
              max={model && model.max_positions - model.image_rows}
              error={errorOf('workload.prompt_tokens')}
              onChange={(promptTokens) => set({ promptTokens })}
              testId="prompt-tokens"
            />
          )}
          {generates ? (
            <Whole
              label={`New tokens${most}`}
              value={draft.newTokens}
              min={1}
              max={model?.max_positions}
              error={errorOf('workload.new_tokens')}
              onChange={(newTokens) => set({ newTokens })}
              testId="new-tokens"
            />
          ) : (
            <div>
              <Text size="sm" fw={500}>
                New tokens
              </Text>
              <Text size="sm" c="dimmed" mt={6}>
                {model?.num_classes
                  ? `A classifier: one of ${model.num_classes}`
                  : 'An encoder: hidden states'}
              </Text>
            </div>
          )}
          <Whole
            label={`Requests${serves ? ' in all, at most' : ''}`}
            value={draft.requests}
            min={1}
            max={10_000}
            error={errorOf('workload.requests')}
            onChange={(requests) => set({ requests })}
            testId="requests"
          />
        </SimpleGrid>
      )}
      {generates && (
        <Whole
          label="Length that plans assume"
          description="Tokens of prompt and answer together, for answers of unknown length; 0: the length is known."
          value={draft.assumedTokens}
          min={0}
          max={model?.max_positions}
          error={errorOf('workload.assumed_tokens')}
          onChange={(assumedTokens) => set({ assumedTokens })}
          testId="assumed-tokens"
        />
      )}
      {generates && !serves && (
        <Switch
          size="xs"
          my="sm"
          checked={draft.kvCache}
          onChange={(event) => set({ kvCache: event.currentTarget.checked })}
          label="Keep keys and values from token to token"
          description="Off: every token is a pass over all tokens so far (use_cache=False)."
          error={errorOf('workload.kv_cache')}
          data-testid="kv-cache"
        />
      )}
      {generates && <SamplingForm draft={draft} set={set} errorOf={errorOf} />}
      <ArrivalsForm draft={draft} model={model} set={set} errorOf={errorOf} />
    </>
  );
}

interface WholeProps {
  label: string;
  description?: string;
  value: number;
  min: number;
  max?: number;
  error?: string;
  onChange: (value: number) => void;
  testId: string;
}

function Whole({ label, description, value, min, max, error, onChange, testId }: WholeProps) {
  return (
    <NumberInput
      label={label}
      description={description}
      value={value}
      min={min}
      max={max}
      allowDecimal={false}
      allowNegative={false}
      error={error}
      data-testid={testId}
      onChange={(next) => typeof next === 'number' && next >= min && onChange(next)}
    />
  );
}
