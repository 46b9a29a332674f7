import { createBrowserRouter } from 'react-router';
import { StartPage } from './pages/start/StartPage';
import { NotFound } from '@/components/NotFound';
import { RouteError } from './shell/RouteError';
import { Shell } from './shell/Shell';

const editorPage = async () => ({ Component: (await import('@/pages/editor/EditorPage')).EditorPage });

/** All pages except the first are loaded when they are opened. */
export const router = createBrowserRouter([
  {
    path: '/',
    element: <Shell />,
    errorElement: <RouteError />,
    hydrateFallbackElement: <></>,
    children: [
      { index: true, element: <StartPage /> },
      {
        path: 'clusters',
        lazy: async () => ({ Component: (await import('./pages/clusters/ClustersPage')).ClustersPage }),
      },
      { path: 'clusters/new', lazy: editorPage },
      { path: 'clusters/:id', lazy: editorPage },
      { path: 'runs', lazy: async () => ({ Component: (await import('./pages/runs/RunsPage')).RunsPage }) },
      {
        path: 'runs/new',
        lazy: async () => ({ Component: (await import('./pages/newRun/NewRunPage')).NewRunPage }),
      },
      { path: 'runs/:id', lazy: async () => ({ Component: (await import('./pages/run/RunPage')).RunPage }) },
      {
        path: 'compare',
        lazy: async () => ({ Component: (await import('./pages/compare/ComparePage')).ComparePage }),
      },
      {
        path: 'experiments',
        lazy: async () => ({
          Component: (await import('./pages/experiments/list/ExperimentsPage')).ExperimentsPage,
        }),
      },
      {
        path: 'experiments/new',
        lazy: async () => ({ Component: (await import('./pages/experiments/design/DesignPage')).DesignPage }),
      },
      {
        path: 'experiments/compare',
        lazy: async () => ({
          Component: (await import('./pages/experiments/compare/PointsPage')).PointsPage,
        }),
      },
      {
        path: 'experiments/reproductions',
        lazy: async () => ({
          Component: (await import('./pages/experiments/reproductions/ReproductionsPage')).ReproductionsPage,
        }),
      },
      {
        path: 'experiments/:id',
        lazy: async () => ({ Component: (await import('./pages/experiments/result/ResultPage')).ResultPage }),
      },
      {
        path: 'account',
        lazy: async () => ({ Component: (await import('./pages/account/AccountPage')).AccountPage }),
      },
      {
        path: 'machines',
        lazy: async () => ({ Component: (await import('./pages/machines/MachinesPage')).MachinesPage }),
      },
      { path: '*', element: <NotFound /> },
    ],
  },
]);
