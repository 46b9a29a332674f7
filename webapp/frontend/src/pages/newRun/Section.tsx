import { Card, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { type ReactNode, useState } from 'react';
import classes from './newRun.module.css';

interface Props {
  title: string;
  about?: ReactNode;
  error?: string;
  /** Whether the server refuses what is in it: here, or beside one of its inputs, it says why. */
  refused?: boolean;
  children: ReactNode;
  /** Title and content stand in one line. */
  inline?: boolean;
}

/** One section of the form, with the server's message about it. */
export function Section({ title, about, error, children, inline = false }: Props) {
  return (
    <Card
      component="section"
      padding="md"
      py={12}
      aria-label={title}
      id={idOf(title)}
      className={inline ? classes.inline : undefined}
    >
      <div className={classes.head}>
        <h2>{title}</h2>
        {about && (
          <Text size="sm" c="dimmed">
            {about}
          </Text>
        )}
      </div>
      {children}
      <Complaint title={title} error={error} />
    </Card>
  );
}

/** A section that is closed until it is opened, or while the server complains about it; `about` says what is in it. */
export function FoldedSection({
  title,
  about,
  error,
  refused = false,
  children,
  open = false,
}: Props & { open?: boolean }) {
  const [opened, setOpened] = useState(open);
  const shown = opened || refused;
  const Arrow = shown ? IconChevronDown : IconChevronRight;
  return (
    <Card component="section" padding="md" py={10} aria-label={title} id={idOf(title)}>
      <UnstyledButton
        className={classes.head}
        data-closed={!shown || undefined}
        aria-expanded={shown}
        onClick={() => setOpened(!shown)}
        data-testid={`section-${title.toLowerCase()}`}
      >
        <Arrow size={16} style={{ alignSelf: 'center', flex: 'none' }} />
        <h2>{title}</h2>
        {about && (
          <Text size="sm" c="dimmed" truncate>
            {about}
          </Text>
        )}
      </UnstyledButton>
      {shown && children}
      <Complaint title={title} error={error} />
    </Card>
  );
}

const idOf = (title: string) => `new-run-${title.toLowerCase()}`;

/** Scrolls to what the server says in a section, and moves the focus there. */
export function showSection(title: string) {
  const section = document.getElementById(idOf(title));
  const place = section?.querySelector<HTMLElement>('[role="alert"], [aria-invalid="true"]') ?? section;
  place?.scrollIntoView({ block: 'center' });
  place?.focus();
}

function Complaint({ title, error }: { title: string; error: string | undefined }) {
  if (!error) return null;
  return (
    <Text size="sm" c="red" mt="xs" role="alert" tabIndex={-1} data-testid={`error-${title.toLowerCase()}`}>
      {error}
    </Text>
  );
}
