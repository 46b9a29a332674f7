import { Center } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';

interface Props {
  /** Where the page is: another one begins without the error. Around everything, '': only loading again helps. */
  path: string;
  children: ReactNode;
}

interface State {
  path: string;
  error: unknown;
}

/** Shown in place of a page that failed to load or to render: why, and a button that loads it again. */
export class PageErrors extends Component<Props, State> {
  override state: State = { path: this.props.path, error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps({ path }: Props, state: State): State | null {
    return path === state.path ? null : { path, error: null };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Center mih="60vh" p="xl">
        <ErrorPanel title="This page failed" message={sentence(error)} onRetry={() => location.reload()} />
      </Center>
    );
  }
}
