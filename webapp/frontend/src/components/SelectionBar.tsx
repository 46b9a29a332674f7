import { Button, Text } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import classes from './SelectionBar.module.css';

interface Props {
  /** How many of what is selected: "3 points". */
  what: string;
  testId: string;
  onClear: () => void;
  /** What can be done with the selection. */
  children: ReactNode;
}

/** Actions on the selected rows of a table, at the lower edge of the window. */
export function SelectionBar({ what, testId, onClear, children }: Props) {
  return (
    <div className={classes.bar} data-testid={testId}>
      <Text size="sm" fw={500}>
        {what} selected
      </Text>
      {children}
      <Button size="xs" variant="subtle" color="gray" leftSection={<IconX size={14} />} onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}
