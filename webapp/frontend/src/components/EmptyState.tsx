import { Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

interface Props {
  title: string;
  text: string;
  /** Level of the heading: 1 where it is the page's. */
  level?: 1 | 2;
  children?: ReactNode;
}

/** Shown instead of an empty list: why it is empty, and what to do next. */
export function EmptyState({ title, text, level = 2, children }: Props) {
  return (
    <Stack align="center" gap="sm" py={72} px="md">
      <Title order={level} fz={22}>
        {title}
      </Title>
      <Text c="dimmed" maw={460} ta="center">
        {text}
      </Text>
      {children}
    </Stack>
  );
}
