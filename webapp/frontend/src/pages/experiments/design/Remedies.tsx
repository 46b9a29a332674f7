import { Button, Group, Loader, Text } from '@mantine/core';
import type { Remedy } from '@/experiment/data/answers';
import { useRemedies } from '@/experiment/data/queries';
import type { ExperimentDocument } from '@/experiment/data/types';
import { type Draft, withWork } from '@/run/request/draft';

interface Props {
  experiment: ExperimentDocument;
  onRun: (changed: (run: Draft) => Draft) => void;
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
            onClick={() => onRun((run) => remedied(run, remedy))}
            data-testid="remedy"
          >
            {remedy.words}
          </Button>
        ))}
      </Group>
    </>
  );
}

function remedied(run: Draft, { model, cluster, prompt_tokens }: Remedy): Draft {
  if (cluster) return { ...run, cluster };
  if (prompt_tokens === null) return { ...run, model, randomWeights: false };
  return { ...withWork(run, { prompt_tokens }), promptKind: 'length' };
}
