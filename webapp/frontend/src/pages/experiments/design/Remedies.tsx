import { Button, Group, Loader, Text } from '@mantine/core';
import type { Remedy } from '@/experiment/data/answers';
import { useRemedies } from '@/experiment/data/queries';
import type { ExperimentDocument } from '@/experiment/data/types';
import type { Draft } from '@/run/request/draft';

interface Props {
  experiment: ExperimentDocument;
  onRun: (patch: Partial<Draft>) => void;
}

/** Changes of the base after which the methods differ, each tried by prediction: one press makes it. */
export function Remedies({ experiment, onRun }: Props) {
  const { data, stale, error } = useRemedies(experiment);
  if (error && !stale) return null;
  if (!data || stale) {
    return (
      <Text size="sm" c="dimmed" mt={6}>
        <Loader size={11} mr={6} />
        Looking for a model, a memory or a prompt with which the methods differ …
      </Text>
    );
  }
  if (data.length === 0) {
    return (
      <Text size="sm" c="dimmed" mt={6}>
        None of the larger models, smaller memories and longer prompts that were tried makes them differ.
      </Text>
    );
  }
  return (
    <>
      <Text size="sm" mt={6}>
        By prediction they differ with one of these:
      </Text>
      <Group gap={8} mt={6}>
        {data.map((remedy) => (
          <Button
            key={remedy.words}
            size="compact-sm"
            variant="default"
            title={`Then on several devices: ${remedy.methods.join(', ')}`}
            onClick={() => onRun(patchOf(remedy))}
            data-testid="remedy"
          >
            {remedy.words}
          </Button>
        ))}
      </Group>
    </>
  );
}

const patchOf = ({ model, cluster, prompt_tokens }: Remedy): Partial<Draft> => {
  if (cluster) return { frozen: cluster };
  return prompt_tokens !== null
    ? { promptKind: 'length', promptTokens: prompt_tokens }
    : { model, randomWeights: false };
};
