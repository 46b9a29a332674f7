import { Group, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';
import classes from './page.module.css';

interface Props {
  title: string;
  /** One line below the title. */
  about?: ReactNode;
  /** Buttons at the right of the title. */
  actions?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}

/** A page: its heading, its actions and its width. */
export function Page({ title, about, actions, wide = false, children }: Props) {
  useDocumentTitle(title);
  return (
    <Stack gap="lg" w="100%" maw={wide ? 1760 : 1320} mx="auto" px={24} pt={24} pb={56}>
      <Group justify="space-between" align="flex-end">
        <div className={classes.title}>
          <Title order={1} fz={24}>
            {title}
          </Title>
          {about && (
            <Text c="dimmed" size="sm" mt={2}>
              {about}
            </Text>
          )}
        </div>
        {actions && (
          <Group gap="sm" data-no-print>
            {actions}
          </Group>
        )}
      </Group>
      {children}
    </Stack>
  );
}

export function useDocumentTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · EdgeLoom`;
  }, [title]);
}
