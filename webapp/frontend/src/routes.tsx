import { createBrowserRouter } from 'react-router';
import { StartPage } from './pages/start/StartPage';
import { NotFound } from './shell/NotFound';
import { RouteError } from './shell/RouteError';
import { Shell } from './shell/Shell';

/** Every page but the first is loaded when it is opened. */
export const router = createBrowserRouter([
  {
    path: '/',
    element: <Shell />,
    errorElement: <RouteError />,
    children: [
      { index: true, element: <StartPage /> },
      { path: '*', element: <NotFound /> },
    ],
  },
]);
