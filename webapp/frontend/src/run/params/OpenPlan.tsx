import { Button, Text } from '@mantine/core';
import { IconFolderOpen } from '@tabler/icons-react';
import { useRef, useState } from 'react';
import type { PlanByHand } from '@/api/types';
import { fromParam } from './plan';

/** Reads a plan from a file of this computer. */
export function OpenPlan({ onOpen }: { onOpen: (plan: PlanByHand) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState('');
  const read = async (file: File | undefined) => {
    if (!file) return;
    const plan = await file
      .text()
      .then((text) => fromParam(JSON.parse(text)))
      .catch(() => null);
    setWrong(plan ? '' : `${file.name} has no plan: expected {"devices": [{"device": …}]}.`);
    if (plan) onOpen(plan);
  };
  return (
    <>
      <input
        ref={input}
        type="file"
        accept="application/json,.json"
        hidden
        onChange={(event) => {
          void read(event.currentTarget.files?.[0]);
          event.currentTarget.value = '';
        }}
        data-testid="plan-file"
      />
      <Button
        variant="default"
        size="xs"
        leftSection={<IconFolderOpen size={14} />}
        onClick={() => input.current?.click()}
        data-testid="plan-open"
      >
        Open a file
      </Button>
      {wrong && (
        <Text size="xs" c="red" role="alert">
          {wrong}
        </Text>
      )}
    </>
  );
}
