import '../lab';
import { mount, unmount } from 'svelte';
import Page from './Page.svelte';

const page = mount(Page, { target: document.getElementById('page')! });
lab.leave = () => void unmount(page);
