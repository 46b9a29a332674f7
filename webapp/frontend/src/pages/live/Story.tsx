import { Button, Group, Text } from '@mantine/core';
import { useShowcases } from '@/api/queries';
import type { RunDetail } from '@/api/types';
import type { Snapshot } from '@/run/data/snapshot';
import type { Selection } from '@/run/topology/Topology';
import { guided } from './guide';

interface Props {
  run: RunDetail;
  picture: Snapshot;
  onShow: (selection: Selection) => void;
}

/** What to look for in the run of a showcase, which has its name, and what to try in a guided one; else nothing. */
export function Story({ run, picture, onShow }: Props) {
  const showcase = useShowcases().data?.find(
    ({ title, request }) => title === run.name && request.strategy === run.strategy,
  );
  if (!showcase) return null;
  const step = showcase.guide ? guided(showcase.guide, picture) : null;
  const { show } = step ?? {};
  return (
    <Group gap="xs" mt={4} data-testid="story" data-step={step?.name} aria-live="polite">
      <Text size="sm" lh={1.35}>
        {step ? step.text : showcase.look_for}
        {step?.todo && <b> {step.todo}</b>}
      </Text>
      {show && (
        <Button
          size="compact-xs"
          variant="light"
          data-testid="guide-show"
          onClick={() => {
            onShow(null); // it may be the one that is shown already, out of sight
            requestAnimationFrame(() => onShow({ ...show, focused: true }));
          }}
        >
          Show me
        </Button>
      )}
    </Group>
  );
}
